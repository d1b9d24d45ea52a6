#!/bin/sh
# Puts the secrets into the lines of `meikyo config snmpd`, which hold references only.
#
#   meikyo config snmpd --cluster cluster.toml | examples/fill-secrets.sh DIRECTORY > snmpd.conf
#
# DIRECTORY is that of the cluster file. Ends with 1 where a secret is missing. The output is secret:
# set `umask 077` before it is written to a file.
set -eu
[ $# -eq 1 ] || { echo "usage: $0 DIRECTORY-OF-THE-CLUSTER-FILE" >&2; exit 2; }
exec awk -v base="$1" '
  function secret(reference,    kind, name, path, text) {
    kind = substr(reference, 1, index(reference, ":") - 1)
    name = substr(reference, index(reference, ":") + 1)
    if (kind == "env") {
      text = ENVIRON[name]
    } else {
      path = (substr(name, 1, 1) == "/") ? name : base "/" name
      if ((getline text < path) < 0) text = ""
      close(path)
      sub(/[ \t\r]+$/, "", text)
    }
    if (text == "") {
      print "there is no secret in " reference > "/dev/stderr"
      missing = 1
    }
    return text
  }
  {
    done = ""
    rest = $0
    while (match(rest, /<(env|file):[^>]*>/)) {
      start = RSTART
      end = RSTART + RLENGTH
      done = done substr(rest, 1, start - 1) secret(substr(rest, start + 1, end - start - 2))
      rest = substr(rest, end)
    }
    print done rest
  }
  END { exit missing }
'
