"""Sends samples to an InfluxDB as the paper did: a pandas DataFrame for each CPU, written by the
DataFrameClient to a measurement of that CPU's name.

    transfer.py PORT DATABASE SAMPLES.csv TIMES

The file has lines of cpu,time,pid,tid,address. The program says `ready`, waits for a line, sends all CPUs
TIMES times, one second apart, with times 1,000 s later each, and prints what that took as one line of JSON.
"""

import http.client
import json
import sys
import time

import influxdb
import pandas

port, database, path, times = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])

sent = 0
send = http.client.HTTPConnection.send


def counted(connection, data):
    """Counts what is handed to the socket."""
    global sent
    sent += len(data)
    return send(connection, data)


http.client.HTTPConnection.send = counted

client = influxdb.DataFrameClient("127.0.0.1", port, database=database)
client.create_database(database)
samples = pandas.read_csv(path, names=["cpu", "time", "pid", "tid", "address"])
repeats = []
for repeat in range(times):
    frames = {}
    for cpu, frame in samples.groupby("cpu"):
        instants = pandas.to_datetime(frame["time"] + repeat * 1_000_000_000_000)
        frames[cpu] = frame[["pid", "tid", "address"]].set_index(pandas.DatetimeIndex(instants))
    repeats.append(frames)
print("ready", flush=True)
sys.stdin.readline()
sent = 0
taken, cpu_time = [], time.process_time()
for frames in repeats:
    begin = time.perf_counter()
    for cpu, frame in frames.items():
        client.write_points(frame, f"CPU{cpu}", protocol="line")
    taken.append(time.perf_counter() - begin)
    time.sleep(max(0, begin + 1 - time.perf_counter()))
cpu_time, wire = time.process_time() - cpu_time, sent
print(json.dumps({"taken_s": taken, "cpu_s": cpu_time, "wire_bytes": wire}), flush=True)
sys.stdin.readline()
there = 0
for cpu in repeats[0]:
    for counts in client.query(f"SELECT COUNT(address) FROM CPU{cpu}").values():
        there += int(counts["count"].iloc[0])
print(json.dumps({"samples": there}), flush=True)
