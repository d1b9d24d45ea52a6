//! Well-known objects by name, so that no MIB file is needed for what is measured every day.
//!
//! Each group names the MIB and RFC that it comes from. Objects beyond these are written as OIDs.

use crate::objects::{Instances, Kind};

/// A group: the name and source, the OID that its objects lie below, and the objects.
pub(super) struct Group {
    pub(super) prefix: &'static [u32],
    pub(super) objects: &'static [Entry],
}

/// Name, arcs below the group, type, instances.
pub(super) type Entry = (&'static str, &'static [u32], Kind, Instances);

use Instances::{Column, Scalar};
use Kind::{Counter32, Counter64, Gauge32, Integer, ObjectId, Octets, Opaque, Text, TimeTicks};

/// The objects that can be measured by name, by the MIB that defines them.
pub(super) const GROUPS: &[Group] = &[
    // system (SNMPv2-MIB, RFC 3418).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 1],
        objects: &[
            ("sysDescr", &[1], Text, Scalar),
            ("sysObjectID", &[2], ObjectId, Scalar),
            ("sysUpTime", &[3], TimeTicks, Scalar),
            ("sysContact", &[4], Text, Scalar),
            ("sysName", &[5], Text, Scalar),
            ("sysLocation", &[6], Text, Scalar),
            ("sysServices", &[7], Integer, Scalar),
            ("sysORLastChange", &[8], TimeTicks, Scalar),
        ],
    },
    // interfaces (IF-MIB, RFC 2863).
    Group { prefix: &[1, 3, 6, 1, 2, 1, 2], objects: &[("ifNumber", &[1], Integer, Scalar)] },
    // ifTable (IF-MIB, RFC 2863).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 2, 2, 1],
        objects: &[
            ("ifIndex", &[1], Integer, Column),
            ("ifDescr", &[2], Text, Column),
            ("ifType", &[3], Integer, Column),
            ("ifMtu", &[4], Integer, Column),
            ("ifSpeed", &[5], Gauge32, Column),
            ("ifPhysAddress", &[6], Octets, Column),
            ("ifAdminStatus", &[7], Integer, Column),
            ("ifOperStatus", &[8], Integer, Column),
            ("ifLastChange", &[9], TimeTicks, Column),
            ("ifInOctets", &[10], Counter32, Column),
            ("ifInUcastPkts", &[11], Counter32, Column),
            ("ifInNUcastPkts", &[12], Counter32, Column),
            ("ifInDiscards", &[13], Counter32, Column),
            ("ifInErrors", &[14], Counter32, Column),
            ("ifInUnknownProtos", &[15], Counter32, Column),
            ("ifOutOctets", &[16], Counter32, Column),
            ("ifOutUcastPkts", &[17], Counter32, Column),
            ("ifOutNUcastPkts", &[18], Counter32, Column),
            ("ifOutDiscards", &[19], Counter32, Column),
            ("ifOutErrors", &[20], Counter32, Column),
            ("ifOutQLen", &[21], Gauge32, Column),
            ("ifSpecific", &[22], ObjectId, Column),
        ],
    },
    // ifXTable (IF-MIB, RFC 2863).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1],
        objects: &[
            ("ifName", &[1], Text, Column),
            ("ifInMulticastPkts", &[2], Counter32, Column),
            ("ifInBroadcastPkts", &[3], Counter32, Column),
            ("ifOutMulticastPkts", &[4], Counter32, Column),
            ("ifOutBroadcastPkts", &[5], Counter32, Column),
            ("ifHCInOctets", &[6], Counter64, Column),
            ("ifHCInUcastPkts", &[7], Counter64, Column),
            ("ifHCInMulticastPkts", &[8], Counter64, Column),
            ("ifHCInBroadcastPkts", &[9], Counter64, Column),
            ("ifHCOutOctets", &[10], Counter64, Column),
            ("ifHCOutUcastPkts", &[11], Counter64, Column),
            ("ifHCOutMulticastPkts", &[12], Counter64, Column),
            ("ifHCOutBroadcastPkts", &[13], Counter64, Column),
            ("ifLinkUpDownTrapEnable", &[14], Integer, Column),
            ("ifHighSpeed", &[15], Gauge32, Column),
            ("ifPromiscuousMode", &[16], Integer, Column),
            ("ifConnectorPresent", &[17], Integer, Column),
            ("ifAlias", &[18], Text, Column),
            ("ifCounterDiscontinuityTime", &[19], TimeTicks, Column),
        ],
    },
    // ifMIBObjects (IF-MIB, RFC 2863).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 31, 1],
        objects: &[
            ("ifTableLastChange", &[5], TimeTicks, Scalar),
            ("ifStackLastChange", &[6], TimeTicks, Scalar),
        ],
    },
    // ip (IP-MIB, RFC 4293).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 4],
        objects: &[
            ("ipForwarding", &[1], Integer, Scalar),
            ("ipDefaultTTL", &[2], Integer, Scalar),
            ("ipInReceives", &[3], Counter32, Scalar),
            ("ipInHdrErrors", &[4], Counter32, Scalar),
            ("ipInAddrErrors", &[5], Counter32, Scalar),
            ("ipForwDatagrams", &[6], Counter32, Scalar),
            ("ipInUnknownProtos", &[7], Counter32, Scalar),
            ("ipInDiscards", &[8], Counter32, Scalar),
            ("ipInDelivers", &[9], Counter32, Scalar),
            ("ipOutRequests", &[10], Counter32, Scalar),
            ("ipOutDiscards", &[11], Counter32, Scalar),
            ("ipOutNoRoutes", &[12], Counter32, Scalar),
            ("ipReasmTimeout", &[13], Integer, Scalar),
            ("ipReasmReqds", &[14], Counter32, Scalar),
            ("ipReasmOKs", &[15], Counter32, Scalar),
            ("ipReasmFails", &[16], Counter32, Scalar),
            ("ipFragOKs", &[17], Counter32, Scalar),
            ("ipFragFails", &[18], Counter32, Scalar),
            ("ipFragCreates", &[19], Counter32, Scalar),
        ],
    },
    // icmp (IP-MIB, RFC 4293).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 5],
        objects: &[
            ("icmpInMsgs", &[1], Counter32, Scalar),
            ("icmpInErrors", &[2], Counter32, Scalar),
            ("icmpInDestUnreachs", &[3], Counter32, Scalar),
            ("icmpInEchos", &[8], Counter32, Scalar),
            ("icmpInEchoReps", &[9], Counter32, Scalar),
            ("icmpOutMsgs", &[14], Counter32, Scalar),
            ("icmpOutErrors", &[15], Counter32, Scalar),
            ("icmpOutDestUnreachs", &[16], Counter32, Scalar),
            ("icmpOutEchos", &[21], Counter32, Scalar),
            ("icmpOutEchoReps", &[22], Counter32, Scalar),
        ],
    },
    // tcp (TCP-MIB, RFC 4022).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 6],
        objects: &[
            ("tcpRtoAlgorithm", &[1], Integer, Scalar),
            ("tcpRtoMin", &[2], Integer, Scalar),
            ("tcpRtoMax", &[3], Integer, Scalar),
            ("tcpMaxConn", &[4], Integer, Scalar),
            ("tcpActiveOpens", &[5], Counter32, Scalar),
            ("tcpPassiveOpens", &[6], Counter32, Scalar),
            ("tcpAttemptFails", &[7], Counter32, Scalar),
            ("tcpEstabResets", &[8], Counter32, Scalar),
            ("tcpCurrEstab", &[9], Gauge32, Scalar),
            ("tcpInSegs", &[10], Counter32, Scalar),
            ("tcpOutSegs", &[11], Counter32, Scalar),
            ("tcpRetransSegs", &[12], Counter32, Scalar),
            ("tcpInErrs", &[14], Counter32, Scalar),
            ("tcpOutRsts", &[15], Counter32, Scalar),
            ("tcpHCInSegs", &[17], Counter64, Scalar),
            ("tcpHCOutSegs", &[18], Counter64, Scalar),
        ],
    },
    // udp (UDP-MIB, RFC 4113).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 7],
        objects: &[
            ("udpInDatagrams", &[1], Counter32, Scalar),
            ("udpNoPorts", &[2], Counter32, Scalar),
            ("udpInErrors", &[3], Counter32, Scalar),
            ("udpOutDatagrams", &[4], Counter32, Scalar),
            ("udpHCInDatagrams", &[8], Counter64, Scalar),
            ("udpHCOutDatagrams", &[9], Counter64, Scalar),
        ],
    },
    // snmp (SNMPv2-MIB, RFC 3418).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 11],
        objects: &[
            ("snmpInPkts", &[1], Counter32, Scalar),
            ("snmpOutPkts", &[2], Counter32, Scalar),
            ("snmpInBadVersions", &[3], Counter32, Scalar),
            ("snmpInBadCommunityNames", &[4], Counter32, Scalar),
            ("snmpInBadCommunityUses", &[5], Counter32, Scalar),
            ("snmpInASNParseErrs", &[6], Counter32, Scalar),
            ("snmpInTotalReqVars", &[13], Counter32, Scalar),
            ("snmpInGetRequests", &[15], Counter32, Scalar),
            ("snmpInGetNexts", &[16], Counter32, Scalar),
            ("snmpOutGetResponses", &[28], Counter32, Scalar),
            ("snmpSilentDrops", &[31], Counter32, Scalar),
            ("snmpProxyDrops", &[32], Counter32, Scalar),
        ],
    },
    // hrSystem (HOST-RESOURCES-MIB, RFC 2790).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 25, 1],
        objects: &[
            ("hrSystemUptime", &[1], TimeTicks, Scalar),
            ("hrSystemDate", &[2], Octets, Scalar),
            ("hrSystemInitialLoadDevice", &[3], Integer, Scalar),
            ("hrSystemInitialLoadParameters", &[4], Text, Scalar),
            ("hrSystemNumUsers", &[5], Gauge32, Scalar),
            ("hrSystemProcesses", &[6], Gauge32, Scalar),
            ("hrSystemMaxProcesses", &[7], Integer, Scalar),
        ],
    },
    // hrStorage (HOST-RESOURCES-MIB, RFC 2790).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 25, 2],
        objects: &[("hrMemorySize", &[2], Integer, Scalar)],
    },
    // hrStorageTable (HOST-RESOURCES-MIB, RFC 2790).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1],
        objects: &[
            ("hrStorageIndex", &[1], Integer, Column),
            ("hrStorageType", &[2], ObjectId, Column),
            ("hrStorageDescr", &[3], Text, Column),
            ("hrStorageAllocationUnits", &[4], Integer, Column),
            ("hrStorageSize", &[5], Integer, Column),
            ("hrStorageUsed", &[6], Integer, Column),
            ("hrStorageAllocationFailures", &[7], Counter32, Column),
        ],
    },
    // hrDeviceTable (HOST-RESOURCES-MIB, RFC 2790).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 25, 3, 2, 1],
        objects: &[
            ("hrDeviceIndex", &[1], Integer, Column),
            ("hrDeviceType", &[2], ObjectId, Column),
            ("hrDeviceDescr", &[3], Text, Column),
            ("hrDeviceID", &[4], ObjectId, Column),
            ("hrDeviceStatus", &[5], Integer, Column),
            ("hrDeviceErrors", &[6], Counter32, Column),
        ],
    },
    // hrProcessorTable (HOST-RESOURCES-MIB, RFC 2790).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 25, 3, 3, 1],
        objects: &[
            ("hrProcessorFrwID", &[1], ObjectId, Column),
            ("hrProcessorLoad", &[2], Integer, Column),
        ],
    },
    // hrSWRunTable and hrSWRunPerfTable (HOST-RESOURCES-MIB, RFC 2790).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 25],
        objects: &[
            ("hrSWRunName", &[4, 2, 1, 2], Text, Column),
            ("hrSWRunPath", &[4, 2, 1, 4], Text, Column),
            ("hrSWRunParameters", &[4, 2, 1, 5], Text, Column),
            ("hrSWRunType", &[4, 2, 1, 6], Integer, Column),
            ("hrSWRunStatus", &[4, 2, 1, 7], Integer, Column),
            ("hrSWRunPerfCPU", &[5, 1, 1, 1], Integer, Column),
            ("hrSWRunPerfMem", &[5, 1, 1, 2], Integer, Column),
        ],
    },
    // memory (UCD-SNMP-MIB).
    Group {
        prefix: &[1, 3, 6, 1, 4, 1, 2021, 4],
        objects: &[
            ("memIndex", &[1], Integer, Scalar),
            ("memErrorName", &[2], Text, Scalar),
            ("memTotalSwap", &[3], Integer, Scalar),
            ("memAvailSwap", &[4], Integer, Scalar),
            ("memTotalReal", &[5], Integer, Scalar),
            ("memAvailReal", &[6], Integer, Scalar),
            ("memTotalFree", &[11], Integer, Scalar),
            ("memMinimumSwap", &[12], Integer, Scalar),
            ("memShared", &[13], Integer, Scalar),
            ("memBuffer", &[14], Integer, Scalar),
            ("memCached", &[15], Integer, Scalar),
            ("memSwapError", &[100], Integer, Scalar),
            ("memSwapErrorMsg", &[101], Text, Scalar),
        ],
    },
    // dskTable (UCD-SNMP-MIB).
    Group {
        prefix: &[1, 3, 6, 1, 4, 1, 2021, 9, 1],
        objects: &[
            ("dskIndex", &[1], Integer, Column),
            ("dskPath", &[2], Text, Column),
            ("dskDevice", &[3], Text, Column),
            ("dskMinimum", &[4], Integer, Column),
            ("dskMinPercent", &[5], Integer, Column),
            ("dskTotal", &[6], Integer, Column),
            ("dskAvail", &[7], Integer, Column),
            ("dskUsed", &[8], Integer, Column),
            ("dskPercent", &[9], Integer, Column),
            ("dskPercentNode", &[10], Integer, Column),
            ("dskTotalLow", &[11], Gauge32, Column),
            ("dskTotalHigh", &[12], Gauge32, Column),
            ("dskAvailLow", &[13], Gauge32, Column),
            ("dskAvailHigh", &[14], Gauge32, Column),
            ("dskUsedLow", &[15], Gauge32, Column),
            ("dskUsedHigh", &[16], Gauge32, Column),
            ("dskErrorFlag", &[100], Integer, Column),
            ("dskErrorMsg", &[101], Text, Column),
        ],
    },
    // laTable (UCD-SNMP-MIB).
    Group {
        prefix: &[1, 3, 6, 1, 4, 1, 2021, 10, 1],
        objects: &[
            ("laIndex", &[1], Integer, Column),
            ("laNames", &[2], Text, Column),
            ("laLoad", &[3], Text, Column),
            ("laConfig", &[4], Text, Column),
            ("laLoadInt", &[5], Integer, Column),
            ("laLoadFloat", &[6], Opaque, Column),
            ("laErrorFlag", &[100], Integer, Column),
            ("laErrMessage", &[101], Text, Column),
        ],
    },
    // systemStats (UCD-SNMP-MIB).
    Group {
        prefix: &[1, 3, 6, 1, 4, 1, 2021, 11],
        objects: &[
            ("ssIndex", &[1], Integer, Scalar),
            ("ssErrorName", &[2], Text, Scalar),
            ("ssSwapIn", &[3], Integer, Scalar),
            ("ssSwapOut", &[4], Integer, Scalar),
            ("ssIOSent", &[5], Integer, Scalar),
            ("ssIOReceive", &[6], Integer, Scalar),
            ("ssSysInterrupts", &[7], Integer, Scalar),
            ("ssSysContext", &[8], Integer, Scalar),
            ("ssCpuUser", &[9], Integer, Scalar),
            ("ssCpuSystem", &[10], Integer, Scalar),
            ("ssCpuIdle", &[11], Integer, Scalar),
            ("ssCpuRawUser", &[50], Counter32, Scalar),
            ("ssCpuRawNice", &[51], Counter32, Scalar),
            ("ssCpuRawSystem", &[52], Counter32, Scalar),
            ("ssCpuRawIdle", &[53], Counter32, Scalar),
            ("ssCpuRawWait", &[54], Counter32, Scalar),
            ("ssCpuRawKernel", &[55], Counter32, Scalar),
            ("ssCpuRawInterrupt", &[56], Counter32, Scalar),
            ("ssIORawSent", &[57], Counter32, Scalar),
            ("ssIORawReceived", &[58], Counter32, Scalar),
            ("ssRawInterrupts", &[59], Counter32, Scalar),
            ("ssRawContexts", &[60], Counter32, Scalar),
            ("ssCpuRawSoftIRQ", &[61], Counter32, Scalar),
            ("ssRawSwapIn", &[62], Counter32, Scalar),
            ("ssRawSwapOut", &[63], Counter32, Scalar),
            ("ssCpuRawSteal", &[64], Counter32, Scalar),
            ("ssCpuRawGuest", &[65], Counter32, Scalar),
            ("ssCpuRawGuestNice", &[66], Counter32, Scalar),
        ],
    },
    // diskIOTable (UCD-DISKIO-MIB).
    Group {
        prefix: &[1, 3, 6, 1, 4, 1, 2021, 13, 15, 1, 1],
        objects: &[
            ("diskIOIndex", &[1], Integer, Column),
            ("diskIODevice", &[2], Text, Column),
            ("diskIONRead", &[3], Counter32, Column),
            ("diskIONWritten", &[4], Counter32, Column),
            ("diskIOReads", &[5], Counter32, Column),
            ("diskIOWrites", &[6], Counter32, Column),
            ("diskIONReadX", &[12], Counter64, Column),
            ("diskIONWrittenX", &[13], Counter64, Column),
        ],
    },
    // nsCacheTable (NET-SNMP-AGENT-MIB).
    Group {
        prefix: &[1, 3, 6, 1, 4, 1, 8072, 1, 5],
        objects: &[
            ("nsCacheDefaultTimeout", &[1], Integer, Scalar),
            ("nsCacheEnabled", &[2], Integer, Scalar),
            ("nsCacheTimeout", &[3, 1, 2], Integer, Column),
            ("nsCacheStatus", &[3, 1, 3], Integer, Column),
        ],
    },
    // snmpEngine (SNMP-FRAMEWORK-MIB, RFC 3411).
    Group {
        prefix: &[1, 3, 6, 1, 6, 3, 10, 2, 1],
        objects: &[
            ("snmpEngineID", &[1], Octets, Scalar),
            ("snmpEngineBoots", &[2], Integer, Scalar),
            ("snmpEngineTime", &[3], Integer, Scalar),
            ("snmpEngineMaxMessageSize", &[4], Integer, Scalar),
        ],
    },
    // usmStats (SNMP-USER-BASED-SM-MIB, RFC 3414).
    Group {
        prefix: &[1, 3, 6, 1, 6, 3, 15, 1, 1],
        objects: &[
            ("usmStatsUnsupportedSecLevels", &[1], Counter32, Scalar),
            ("usmStatsNotInTimeWindows", &[2], Counter32, Scalar),
            ("usmStatsUnknownUserNames", &[3], Counter32, Scalar),
            ("usmStatsUnknownEngineIDs", &[4], Counter32, Scalar),
            ("usmStatsWrongDigests", &[5], Counter32, Scalar),
            ("usmStatsDecryptionErrors", &[6], Counter32, Scalar),
        ],
    },
    // dot1dBridge (BRIDGE-MIB, RFC 4188).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 17],
        objects: &[
            ("dot1dBaseBridgeAddress", &[1, 1], Octets, Scalar),
            ("dot1dBaseNumPorts", &[1, 2], Integer, Scalar),
            ("dot1dBasePortIfIndex", &[1, 4, 1, 2], Integer, Column),
            ("dot1dStpTopChanges", &[2, 4], Counter32, Scalar),
            ("dot1dStpDesignatedRoot", &[2, 5], Octets, Scalar),
            ("dot1dStpPortState", &[2, 15, 1, 3], Integer, Column),
            ("dot1dTpLearnedEntryDiscards", &[4, 1], Counter32, Scalar),
            ("dot1dTpFdbPort", &[4, 3, 1, 2], Integer, Column),
            ("dot1dTpFdbStatus", &[4, 3, 1, 3], Integer, Column),
        ],
    },
    // dot3StatsTable (EtherLike-MIB, RFC 3635).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 10, 7, 2, 1],
        objects: &[
            ("dot3StatsAlignmentErrors", &[2], Counter32, Column),
            ("dot3StatsFCSErrors", &[3], Counter32, Column),
            ("dot3StatsSingleCollisionFrames", &[4], Counter32, Column),
            ("dot3StatsMultipleCollisionFrames", &[5], Counter32, Column),
            ("dot3StatsLateCollisions", &[8], Counter32, Column),
            ("dot3StatsExcessiveCollisions", &[9], Counter32, Column),
            ("dot3StatsInternalMacTransmitErrors", &[10], Counter32, Column),
            ("dot3StatsFrameTooLongs", &[13], Counter32, Column),
            ("dot3StatsInternalMacReceiveErrors", &[16], Counter32, Column),
            ("dot3StatsDuplexStatus", &[19], Integer, Column),
        ],
    },
    // dot3PauseTable (EtherLike-MIB, RFC 3635).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 10, 7, 10, 1],
        objects: &[
            ("dot3PauseAdminMode", &[1], Integer, Column),
            ("dot3PauseOperMode", &[2], Integer, Column),
            ("dot3InPauseFrames", &[3], Counter32, Column),
            ("dot3OutPauseFrames", &[4], Counter32, Column),
            ("dot3HCInPauseFrames", &[5], Counter64, Column),
            ("dot3HCOutPauseFrames", &[6], Counter64, Column),
        ],
    },
    // entPhySensorTable (ENTITY-SENSOR-MIB, RFC 3433).
    Group {
        prefix: &[1, 3, 6, 1, 2, 1, 99, 1, 1, 1],
        objects: &[
            ("entPhySensorType", &[1], Integer, Column),
            ("entPhySensorScale", &[2], Integer, Column),
            ("entPhySensorPrecision", &[3], Integer, Column),
            ("entPhySensorValue", &[4], Integer, Column),
            ("entPhySensorOperStatus", &[5], Integer, Column),
        ],
    },
];
