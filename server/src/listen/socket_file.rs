//! The file of a Unix socket: made, and removed again, without ever removing anything else.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// A Unix socket that is listened at. Its file is removed when this is dropped, if it is still that
/// file.
#[derive(Debug)]
pub(crate) struct UnixDoor {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl UnixDoor {
    /// Listens at a path. A socket that nobody listens at any more is replaced.
    ///
    /// # Errors
    /// When there is something else at the path, or somebody listens there, or the system refuses.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => remove_abandoned(path)?,
            Ok(_) => {
                let text = "there is a file that is no socket, and it stays; name another path";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = UnixListener::bind(path)?;
        let made = std::fs::symlink_metadata(path)?;
        Ok(Self { listener, path: path.to_owned(), identity: (made.dev(), made.ino()) })
    }

    /// The next connection, and the user who made it if the system says who.
    pub(super) async fn accept(&self) -> io::Result<(UnixStream, Option<u32>)> {
        let (stream, _) = self.listener.accept().await?;
        let user = stream.peer_cred().ok().map(|of| of.uid());
        Ok((stream, user))
    }
}

/// Removes a socket if connecting to it says that nobody listens.
fn remove_abandoned(path: &Path) -> io::Result<()> {
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => {
            let text = "somebody listens there already; end that server, or name another path";
            Err(io::Error::new(io::ErrorKind::AddrInUse, text))
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        // Full queues and missing rights do not say that nobody is there.
        Err(error) => Err(error),
    }
}

impl Drop for UnixDoor {
    fn drop(&mut self) {
        let Ok(found) = std::fs::symlink_metadata(&self.path) else { return };
        if (found.dev(), found.ino()) != self.identity {
            return;
        }
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "the socket's file could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(path: &Path) -> io::Result<UnixDoor> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async { UnixDoor::open(path) })
    }

    #[test]
    fn only_an_abandoned_socket_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("meikyo.sock");
        std::fs::write(&path, "precious").unwrap();
        let error = listen(&path).unwrap_err();
        assert!(error.to_string().contains("no socket"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(listen(&link).is_err() && link.is_symlink(), "links are not followed");
        let dangling = dir.path().join("dangling");
        std::os::unix::fs::symlink(dir.path().join("nothing"), &dangling).unwrap();
        assert!(listen(&dangling).is_err() && dangling.is_symlink());
        std::fs::remove_file(&path).unwrap();
        let abandoned = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = listen(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(abandoned);
        assert!(path.exists());
        drop(listen(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn what_somebody_put_in_its_place_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("meikyo.sock");
        let door = listen(&path).unwrap();
        std::fs::write(dir.path().join("other"), "precious").unwrap();
        std::fs::rename(dir.path().join("other"), &path).unwrap();
        drop(door);
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
}
