//! Which system calls a lab has no use for: they are refused before the kernel acts on them.
//!
//! The filter is a second wall behind namespaces and missing capabilities: it keeps large and rarely
//! needed parts of the host's kernel out of reach, and what namespaces do not cover (keyrings, sockets
//! to a hypervisor, files that give their owner's rights to whoever runs them).

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W,
    c_int, c_long,
};

/// Set user id and set group id.
const SET_ID_BITS: u32 = 0o6000;
const NAMESPACE_BITS: u32 = 0x7e02_0000;
const CREATING: u32 = 0o20_000_000 | 0o100;
const X32: u32 = 0x4000_0000;
const ALLOW: u32 = 0x7fff_0000;
const REFUSE: u32 = 0x0005_0000;
const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCHITECTURE: u32 = 4;
const OFFSET_ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Linux 6.6; the table is the same on all architectures from here on.
const SYS_FCHMODAT2: c_long = 452;

/// Refused in every lab as if the kernel did not have them. Keyrings belong to the host's users, and the
/// others are large parts of the kernel that need no privilege.
const ABSENT: [c_long; 14] = [
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_open_by_handle_at,
    // The mode of a new file is in memory, where a filter cannot look.
    libc::SYS_openat2,
    libc::SYS_perf_event_open,
    libc::SYS_swapon,
    libc::SYS_userfaultfd,
];

/// Refused in a kernel that is a process, too: it mounts nothing on the host and needs no namespaces.
const ABSENT_IN_MACHINE: [c_long; 15] = [
    libc::SYS_chroot,
    libc::SYS_clone3,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_init_module,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    libc::SYS_unshare,
];

/// Where a call has the mode of a file, counted from 0.
const MODES: &[(c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (SYS_FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
];
/// Where a call has flags of opening; the mode of a new file comes after them.
const OPENINGS: &[(c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

const FAMILIES: [c_int; 5] =
    [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET];
const FAMILIES_OF_MACHINE: [c_int; 1] = [libc::AF_UNIX];

/// The program of a filter (`seccomp(2)`) for a kernel that is a process, or for a lab in namespaces.
pub(super) fn program(machine: bool) -> Vec<libc::sock_filter> {
    let mut program = vec![
        load(OFFSET_ARCHITECTURE),
        jump(BPF_JEQ, ARCHITECTURE, 1, 0),
        refuse(libc::ENOSYS),
        load(OFFSET_NUMBER),
        jump(BPF_JGE, X32, 0, 1),
        refuse(libc::ENOSYS),
    ];
    let more: &[c_long] = if machine { &ABSENT_IN_MACHINE } else { &[] };
    for &call in ABSENT.iter().chain(more) {
        when(&mut program, call, &[refuse(libc::ENOSYS)]);
    }
    for &(call, mode) in MODES {
        let no_set_id =
            [load_argument(mode), jump(BPF_JSET, SET_ID_BITS, 0, 1), refuse(libc::EPERM), allow()];
        when(&mut program, call, &no_set_id);
    }
    for &(call, flags) in OPENINGS {
        let no_set_id = [
            load_argument(flags),
            jump(BPF_JSET, CREATING, 0, 3),
            load_argument(flags + 1),
            jump(BPF_JSET, SET_ID_BITS, 0, 1),
            refuse(libc::EPERM),
            allow(),
        ];
        when(&mut program, call, &no_set_id);
    }
    let families: &[c_int] = if machine { &FAMILIES_OF_MACHINE } else { &FAMILIES };
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        let mut known = vec![load_argument(0)];
        for &family in families {
            known.extend([jump(BPF_JEQ, family.cast_unsigned(), 0, 1), allow()]);
        }
        known.push(refuse(libc::EAFNOSUPPORT));
        when(&mut program, call, &known);
    }
    if machine {
        let no_namespace = [
            load_argument(0),
            operation(BPF_ALU | BPF_AND | BPF_K, NAMESPACE_BITS),
            jump(BPF_JEQ, 0, 1, 0),
            refuse(libc::EPERM),
            allow(),
        ];
        when(&mut program, libc::SYS_clone, &no_namespace);
    }
    program.push(allow());
    program
}

/// Adds what is done with one call, which must end the filter; others pass it by.
fn when(program: &mut Vec<libc::sock_filter>, call: c_long, then: &[libc::sock_filter]) {
    let number = u32::try_from(call).expect("numbers of system calls are small");
    let length = u8::try_from(then.len()).expect("blocks are short");
    program.push(jump(BPF_JEQ, number, 0, length));
    program.extend_from_slice(then);
}

fn operation(code: u32, value: u32) -> libc::sock_filter {
    let code = u16::try_from(code).expect("codes have 16 bits");
    libc::sock_filter { code, jt: 0, jf: 0, k: value }
}

fn load(offset: u32) -> libc::sock_filter {
    operation(BPF_LD | BPF_W | BPF_ABS, offset)
}

/// The lower half of an argument, where all of them have their bits.
fn load_argument(nth: u32) -> libc::sock_filter {
    load(OFFSET_ARGUMENTS + 8 * nth)
}

fn jump(condition: u32, value: u32, yes: u8, no: u8) -> libc::sock_filter {
    libc::sock_filter { jt: yes, jf: no, ..operation(BPF_JMP | condition | BPF_K, value) }
}

fn refuse(error: c_int) -> libc::sock_filter {
    operation(BPF_RET | BPF_K, REFUSE | error.cast_unsigned())
}

fn allow() -> libc::sock_filter {
    operation(BPF_RET | BPF_K, ALLOW)
}
