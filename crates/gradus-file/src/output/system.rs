//! The calls of the operating system for writing files.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// A file without a name in `folder`, which vanishes with the process, so that a killed writer
/// leaves nothing behind; `None` where system or file system have no such thing.
#[cfg(target_os = "linux")]
pub(super) fn anonymous(folder: &Path) -> io::Result<Option<File>> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let opened = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .mode(0o666)
        .open(folder);
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) => match error.raw_os_error() {
            Some(
                libc::EACCES
                | libc::EPERM
                | libc::EROFS
                | libc::ENOENT
                | libc::ENOTDIR
                | libc::ENOSPC
                | libc::EDQUOT
                | libc::EMFILE
                | libc::ENFILE,
            ) => Err(error),
            _ => Ok(None),
        },
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn anonymous(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Gives a file without a name this one, which must be free.
#[cfg(target_os = "linux")]
pub(super) fn name(file: &File, to: &Path) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::ffi::OsStrExt as _;
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = CString::new(to.as_os_str().as_bytes())?;
    // SAFETY: both names are strings that end in zero and outlive the call.
    let status = unsafe {
        libc::linkat(
            libc::AT_FDCWD,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            libc::AT_SYMLINK_FOLLOW,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn name(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether this process may write to `path` (into it, if it is a folder), without trying.
#[cfg(unix)]
pub(super) fn may_write(path: &Path, folder: bool) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let mode = if folder { libc::W_OK | libc::X_OK } else { libc::W_OK };
    // SAFETY: the name is a string that ends in zero and outlives the call.
    let status = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), mode, libc::AT_EACCESS) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(unix))]
pub(super) fn may_write(path: &Path, _: bool) -> io::Result<()> {
    if path.metadata()?.permissions().readonly() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

/// Whether only the owner of `file` may replace it in `folder`, and this process is not they.
#[cfg(unix)]
pub(super) fn sticky_bit_forbids(file: &Metadata, folder: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // SAFETY: the call takes nothing and cannot fail.
    let me = unsafe { libc::geteuid() };
    folder.mode() & 0o1000 != 0 && me != 0 && me != file.uid() && me != folder.uid()
}

#[cfg(not(unix))]
pub(super) fn sticky_bit_forbids(_: &Metadata, _: &Metadata) -> bool {
    false
}

/// Gives `file` the permissions and, where allowed, the owner of the file it replaces.
#[cfg(unix)]
pub(super) fn copy_owner_and_mode(file: &File, before: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
    let now = file.metadata()?;
    // Only root may give files away; whoever may not keeps them, as an editor does.
    if now.gid() != before.gid() {
        let _ = fchown(file, None, Some(before.gid()));
    }
    if now.uid() != before.uid() {
        let _ = fchown(file, Some(before.uid()), None);
    }
    let mode = before.permissions().mode() & 0o7777;
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
pub(super) fn copy_owner_and_mode(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Returns the identity of a file, whatever its names: device and number.
#[cfg(unix)]
pub(super) fn identity(file: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
pub(super) fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// The kinds of files that are not regular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Regular,
    Folder,
    /// A pipe or a character device: written to as it comes.
    Stream,
    BlockDevice,
    Socket,
}

#[cfg(unix)]
pub(super) fn node(file: &Metadata) -> Node {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = file.file_type();
    if kind.is_dir() {
        Node::Folder
    } else if kind.is_fifo() || kind.is_char_device() {
        Node::Stream
    } else if kind.is_block_device() {
        Node::BlockDevice
    } else if kind.is_socket() {
        Node::Socket
    } else {
        Node::Regular
    }
}

#[cfg(not(unix))]
pub(super) fn node(file: &Metadata) -> Node {
    if file.is_dir() { Node::Folder } else { Node::Regular }
}

/// Whether it is a character device, which any number may read and write at once.
#[cfg(unix)]
pub(super) fn is_character_device(file: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    file.file_type().is_char_device()
}

#[cfg(not(unix))]
pub(super) fn is_character_device(_: &Metadata) -> bool {
    false
}

/// The open file of this process that `path` names, `/dev/stdout` for one. Opened by that name
/// again, a file that the shell redirected to would be written from its start.
#[cfg(unix)]
pub(super) fn descriptor(path: &Path) -> Option<i32> {
    let path = path.to_str()?;
    match path {
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        _ => {
            let number = path.strip_prefix("/dev/fd/").or(path.strip_prefix("/proc/self/fd/"))?;
            number.parse().ok().filter(|&number: &i32| number >= 0)
        }
    }
}

#[cfg(not(unix))]
pub(super) fn descriptor(_: &Path) -> Option<i32> {
    None
}

/// Whether an open file of this process can be written to.
#[cfg(unix)]
pub(super) fn is_writable(descriptor: i32) -> io::Result<()> {
    // SAFETY: the call only asks; a number that is no open file gives an error.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    match flags & libc::O_ACCMODE {
        libc::O_RDONLY => Err(io::Error::new(io::ErrorKind::InvalidInput, "is open for reading")),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
pub(super) fn is_writable(_: i32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Another handle of an open file of this process.
#[cfg(unix)]
pub(super) fn duplicate(descriptor: i32) -> io::Result<File> {
    use std::os::fd::FromRawFd as _;
    // SAFETY: a number that is no open file gives an error.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was made just now and belongs to nobody else.
    Ok(unsafe { File::from_raw_fd(copy) })
}

#[cfg(not(unix))]
pub(super) fn duplicate(_: i32) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes a rename durable; only some systems allow a folder to be synced.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        // A folder that may be written but not read cannot be opened; the rename is done anyway.
        match File::open(folder) {
            Ok(folder) => match folder.sync_all() {
                // Some file systems cannot.
                Err(error) if error.kind() != io::ErrorKind::InvalidInput => return Err(error),
                _ => {}
            },
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
