//! Pages of the process under buffers of the driver: opened to the CPU, placed on a
//! NUMA node, closed.

use super::access::{Access, Scene};
use super::object::Home;
use super::objects::Placed;
use super::regions::{HUGE_PAGE, to_usize};
use super::{AllocationRequest, MemoryFlags};
use crate::errno::Errno;
use crate::error::{self, Error, Operation, Status};
use crate::seam::{Advice, MemoryPolicy, Os, Platform, Protection};

impl<P: Platform> Access<'_, P> {
    /// Lets the CPU read and write pages that were addresses only, and tells the
    /// system where they are to be. Whether they were bound to a NUMA node.
    pub(super) fn open_pages(
        &self,
        request: &AllocationRequest,
        scene: &Scene,
        placed: Placed,
        size: u64,
    ) -> Result<bool, Error> {
        let failed = |operation, errno| {
            Error::system(Status::ERROR, operation, errno, error::Object::Bytes(size))
        };
        let (start, length) = to_usize(placed.start)
            .and_then(|start| Ok((start, to_usize(size)?)))
            .map_err(|errno| failed(Operation::MapMemory, errno))?;
        let os = self.os();
        let rights = Protection::READ | Protection::WRITE;
        os.protect(start, length, rights)
            .map_err(|errno| failed(Operation::ProtectMemory, errno))?;
        // Of its region small memory has the advice already.
        if !matches!(placed.home, Home::Host) {
            let _ = os.advise(start, length, Advice::DontFork);
            if size >= HUGE_PAGE {
                let _ = os.advise(start, length, Advice::HugePage);
            }
        }
        let no_substitute = request.flags.contains(MemoryFlags::NO_SUBSTITUTE);
        let node = scene.numa.filter(|_| !request.flags.contains(MemoryFlags::NO_NUMA_BIND));
        let Some(node) = node else { return Ok(false) };
        let policy = if no_substitute { MemoryPolicy::Bind } else { MemoryPolicy::Preferred };
        match self.bind(start, length, policy, node) {
            Ok(()) => Ok(true),
            // Containers forbid it; and it is a wish only, but for NO_SUBSTITUTE.
            Err(Errno::EPERM | Errno::ENOSYS) => Ok(false),
            Err(_) if !no_substitute => Ok(false),
            Err(errno) => {
                self.close_pages(placed.home, placed.start, size, false);
                Err(failed(Operation::BindMemory, errno))
            }
        }
    }

    pub(super) fn bind(
        &self,
        start: usize,
        length: usize,
        policy: MemoryPolicy,
        node: u32,
    ) -> Result<(), Errno> {
        // As many words as the node's number needs: nodes may be many and far apart.
        let mut mask = [0_u64; 16];
        let word = usize::try_from(node >> 6).map_err(|_| Errno::EINVAL)?;
        *mask.get_mut(word).ok_or(Errno::EINVAL)? |= 1_u64 << (node & 63);
        let words = mask.get(..=word).ok_or(Errno::EINVAL)?;
        self.os().bind(start, length, policy, words)
    }

    /// Takes pages from the CPU and drops what they hold.
    pub(super) fn close_pages(&self, home: Home, start: u64, size: u64, bound: bool) {
        // They go with their mapping.
        if matches!(home, Home::Own) {
            return;
        }
        let (Ok(start), Ok(length)) = (to_usize(start), to_usize(size)) else { return };
        let os = self.os();
        let _ = os.advise(start, length, Advice::DontNeed);
        if bound {
            let _ = os.bind(start, length, MemoryPolicy::Default, &[]);
        }
        let _ = os.protect(start, length, Protection::empty());
    }
}
