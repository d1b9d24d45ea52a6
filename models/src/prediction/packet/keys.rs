//! The keys by which files say what cards, cables and switches are like.

use meikyo_units::{Bytes, Nanos};

use super::PacketOptions;
use super::tcp::{Control, Stack, Tcp};
use crate::parameters::{Parameters, choice};
use crate::prediction::program::Messaging;

/// Whether something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Switched {
    On,
    Off,
}
choice!(Switched { On = "on", Off = "off" });

/// Whether hosts send by TCP, and whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenTcp {
    Off,
    Linux26,
    Linux,
}
choice!(GivenTcp { Off = "off", Linux26 = "linux-2.6", Linux = "linux" });

/// Declares the keys. In a model whose frames they are about, `only` says of each when it has an effect; elsewhere the
/// window of connections, which is given too, has one without TCP.
pub(crate) fn declare(
    parameters: &mut Parameters<'_>,
    messaging: Messaging,
    only: Option<&dyn Fn(&mut Parameters<'_>)>,
) -> (PacketOptions, Bytes) {
    let of_frames = only.is_some();
    let only = |parameters: &mut Parameters<'_>| {
        if let Some(only) = only {
            only(parameters);
        }
    };
    only(parameters);
    let doc = "Whether packets are those of TCP, and whose: windows, acknowledgements, time-outs.";
    let tcp = parameters.choice("tcp", GivenTcp::Off, doc);
    let by_tcp = |parameters: &mut Parameters<'_>| {
        if of_frames {
            parameters.only_with(tcp, &[GivenTcp::Linux26, GivenTcp::Linux]);
        }
    };
    by_tcp(parameters);
    let doc = "How the windows of TCP grow, and shrink after a loss.";
    let control = parameters.choice("tcp_control", Control::Cubic, doc).get();
    by_tcp(parameters);
    let window = parameters.size(
        "window",
        Bytes::new(65_536),
        "What a connection has under way at most: how much of a queue each stream can fill, and what need not be there when its \
         sender goes on.",
    );
    only(parameters);
    let port_buffer = parameters.size(
        "port_buffer",
        Bytes::new(262_144),
        "The queue of a switch port; streams whose windows fit into it never fill it.",
    );
    only(parameters);
    let doc = "Whether full queues stop their senders by pause frames (802.3x).";
    let pause = parameters.choice("pause", Switched::On, doc).get() == Switched::On;
    only(parameters);
    let hop_delay = parameters.positive_span(
        "hop_delay",
        Nanos::from_micros(3),
        "From port to port beyond a frame's own time: the cable, and what the switch needs.",
    );
    only(parameters);
    let doc = "What all queues of a switch hold together, if that is less than all of them.";
    let memory = parameters.size_if_written("switch_memory", doc);
    only(parameters);
    let doc = "When a frame that was lost is sent again: the least time-out of TCP.";
    let time_out = parameters.positive_span("time_out", Nanos::from_millis(200), doc);
    only(parameters);
    let doc = "Frames of a million that a switch finds spoiled, by packets.";
    let spoiled_ppm = parameters.count("spoiled_ppm", 0..=500_000_u32, 0, doc);
    let stack = match tcp.get() {
        GivenTcp::Off => None,
        GivenTcp::Linux26 => Some(Stack::Linux26),
        GivenTcp::Linux => Some(Stack::Linux),
    };
    let options = PacketOptions {
        messaging,
        hop_delay,
        pause,
        port_buffer,
        memory,
        time_out,
        spoiled_ppm,
        tcp: stack.map(|stack| Tcp { stack, control, window }),
        shaped: false,
        courses: false,
    };
    (options, window)
}
