//! Jobs by their control groups.
//!
//! Whoever starts programs for others gives each of them a control group of its own, and its path says
//! whose it is: Slurm's steps, containers of Docker, Podman, containerd and LXC, pods of Kubernetes,
//! units of systemd.

/// The job that a control group belongs to: `slurm:123`, `container:0123456789ab` (the beginning of its
/// number, as its tools show it), `pod:UID`, `lxc:NAME`, `unit:NAME.service`, `session:NAME.scope`;
/// `None` where the path says nothing of one.
///
/// A job of Slurm counts before a pod, a pod before its containers, and a unit only where there is none of
/// them: containers run below units of whatever manages them. Of units within units the innermost counts.
pub fn job_of(path: &str) -> Option<String> {
    let parts = || path.split('/').filter(|part| !part.is_empty());
    let slurm = parts().any(|part| part.starts_with("slurm"));
    let number = |part: &str| {
        let number = part.strip_prefix("job_")?;
        let is_number = !number.is_empty() && number.bytes().all(|octet| octet.is_ascii_digit());
        is_number.then(|| format!("slurm:{number}"))
    };
    let of_slurm = || slurm.then(|| parts().find_map(number)).flatten();
    of_slurm()
        .or_else(|| parts().find_map(pod))
        .or_else(|| parts().find_map(container))
        .or_else(|| parts().find_map(|part| Some(format!("lxc:{}", lxc(part)?))))
        .or_else(|| parts().filter_map(unit).next_back())
}

/// The user whose control group it is, as `user:1000`: of systemd's slice of a user, or of Slurm's directory of
/// one; `None` where the path names none.
pub fn user_of(path: &str) -> Option<String> {
    let number = |part: &str| {
        let of_systemd = part.strip_prefix("user-").and_then(|rest| rest.strip_suffix(".slice"));
        let number = of_systemd.or_else(|| part.strip_prefix("uid_"))?;
        let is_number = !number.is_empty() && number.bytes().all(|octet| octet.is_ascii_digit());
        is_number.then(|| format!("user:{number}"))
    };
    path.split('/').find_map(number)
}

/// `kubepods-burstable-pod1234_5678.slice` (systemd's driver) or `pod1234-5678` (cgroupfs).
fn pod(part: &str) -> Option<String> {
    let bare = part.strip_suffix(".slice").unwrap_or(part);
    let begin = if bare.starts_with("kubepods") { bare.find("-pod")? + "-pod".len() } else { 0 };
    let uid = if begin > 0 { &bare[begin..] } else { bare.strip_prefix("pod")? };
    let is_uid = uid.len() >= 32
        && uid.bytes().all(|octet| octet.is_ascii_hexdigit() || matches!(octet, b'-' | b'_'));
    is_uid.then(|| format!("pod:{}", uid.replace('_', "-")))
}

/// `docker-HEX.scope`, `libpod-HEX.scope`, `cri-containerd-HEX.scope`, or the number alone.
fn container(part: &str) -> Option<String> {
    const LENGTH: usize = 64;
    const SHOWN: usize = 12;
    let bare = part.strip_suffix(".scope").unwrap_or(part);
    let number = bare.rsplit('-').next()?;
    let is_number = number.len() == LENGTH && number.bytes().all(|octet| octet.is_ascii_hexdigit());
    is_number.then(|| format!("container:{}", &number[..SHOWN]))
}

/// `lxc.payload.NAME`, as LXC 4 and later call it.
fn lxc(part: &str) -> Option<&str> {
    part.strip_prefix("lxc.payload.").filter(|name| !name.is_empty())
}

fn unit(part: &str) -> Option<String> {
    if part.starts_with("session-") && part.ends_with(".scope") {
        return Some(format!("session:{part}"));
    }
    let is_unit = part.ends_with(".service") || part.ends_with(".scope");
    is_unit.then(|| format!("unit:{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths as their makers document them, or as they were seen.
    #[test]
    fn paths_of_control_groups_say_whose_they_are() {
        let hex = "0123456789ab".to_owned() + &"c".repeat(52);
        let uid = "2f4e9a6b-1111-2222-3333-444455556666";
        let under = uid.replace('-', "_");
        for (path, job) in [
            // Slurm, version 2 and version 1 of the hierarchy.
            ("/system.slice/slurmstepd.scope/job_4711/step_0/user/task_3".into(), "slurm:4711"),
            ("/slurm/uid_1000/job_12/step_batch".into(), "slurm:12"),
            (format!("/docker/{hex}"), "container:0123456789ab"),
            (format!("/system.slice/docker-{hex}.scope"), "container:0123456789ab"),
            (
                format!("/user.slice/user-1000.slice/user@1000.service/libpod-{hex}.scope"),
                "container:0123456789ab",
            ),
            (
                format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{under}.slice/\
                cri-containerd-{hex}.scope"
                ),
                "pod:2f4e9a6b-1111-2222-3333-444455556666",
            ),
            (
                format!("/kubepods/besteffort/pod{uid}/{hex}"),
                "pod:2f4e9a6b-1111-2222-3333-444455556666",
            ),
            ("/lxc.payload.web01/system.slice/nginx.service".into(), "lxc:web01"),
            ("/system.slice/nginx.service".into(), "unit:nginx.service"),
            ("/user.slice/user-1000.slice/session-3.scope".into(), "session:session-3.scope"),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/emacs.service".into(),
                "unit:emacs.service",
            ),
        ] {
            assert_eq!(job_of(&path).as_deref(), Some(job), "{path}");
        }
        for path in ["/", "", "/system.slice", "/job_12/x", "/pod12", "/slurm/uid_1/job_/x"] {
            assert_eq!(job_of(path), None, "{path}");
        }
    }

    #[test]
    fn paths_say_whose_user_they_are() {
        for (path, user) in [
            ("/user.slice/user-1000.slice/session-3.scope", Some("user:1000")),
            ("/slurm/uid_1001/job_12/step_batch", Some("user:1001")),
            ("/system.slice/user-.slice", None),
            ("/user.slice/user-root.slice", None),
            ("/system.slice/nginx.service", None),
        ] {
            assert_eq!(user_of(path).as_deref(), user, "{path}");
        }
    }
}
