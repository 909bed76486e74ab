//! Both ways to reach entries keep the same claims: links are refused, and removed without what they lead to.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::access::Access;
use super::operations::{Fs as _, OsFs};

macro_rules! check {
    ($Handle:ty) => {{
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("root"), place.path().join("outside"));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("kept"), "kept").unwrap();
        symlink("../outside", root.join("link")).unwrap();
        symlink("../outside/kept", root.join("file link")).unwrap();
        symlink("../outside/made", root.join("broken link")).unwrap();
        let [link, sub, new, moved] = ["link", "sub", "new", "moved"].map(Path::new);

        assert!(<$Handle>::root(&root.join(link)).is_err());
        let handle = <$Handle>::root(&root).unwrap();
        assert!(handle.folder(link).is_err());
        for name in ["link", "file link", "broken link"].map(Path::new) {
            for access in [Access::Read, Access::Write, Access::WriteOrCreate, Access::New] {
                assert!(handle.file(name, access).is_err(), "{name:?} {access:?}");
            }
        }
        assert_eq!(handle.link(link).unwrap(), Path::new("../outside"));

        handle.create_folder(sub).unwrap();
        assert!(handle.link(sub).is_err());
        let inner = handle.folder(sub).unwrap();
        assert!(inner.file(new, Access::Read).is_err() && inner.file(new, Access::Write).is_err());
        inner.file(new, Access::New).unwrap();
        assert!(inner.file(new, Access::New).is_err());
        for access in [Access::Read, Access::Write, Access::WriteOrCreate] {
            inner.file(new, access).unwrap();
        }
        assert!(handle.remove_folder(sub).is_err());
        inner.rename(new, &handle, moved).unwrap();
        inner.sync().unwrap();
        handle.remove_folder(sub).unwrap();
        handle.remove_file(link).unwrap();
        let mut names = handle.names().unwrap();
        names.sort_unstable();
        assert_eq!(names, ["broken link", "file link", "moved"]);
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(std::fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    }};
}

#[test]
fn no_handle_leads_through_a_link() {
    check!(super::unix::Handle);
    check!(super::paths::Handle);
}

#[test]
fn a_link_in_the_place_of_a_new_file_is_replaced_and_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let (kept, new) = (place.path().join("kept"), place.path().join("new"));
    std::fs::write(&kept, "kept").unwrap();
    symlink(&kept, &new).unwrap();
    OsFs.create(&new).unwrap().write_all(b"new").unwrap();
    OsFs.create(&new).unwrap().write_all(b"newer").unwrap();
    assert_eq!((std::fs::read(&kept).unwrap(), std::fs::read(&new).unwrap()), (b"kept".to_vec(), b"newer".to_vec()));
    assert!(!new.is_symlink());
}
