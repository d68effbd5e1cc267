//! An allocator that asks for large pages.
//!
//! The first touch of every page of 4 KiB is a call into the kernel: of a large matrix they take longer than copying it
//! does. NumPy asks for pages of 2 MiB where an array is large; so does this allocator. A program that uses gradus as a
//! library chooses its own allocator; the `gradus` command and the Python package use this one:
//!
//! ```
//! #[global_allocator]
//! static MEMORY: gradus_base::memory::LargePages = gradus_base::memory::LargePages::SYSTEM;
//! # fn main() {}
//! ```

use std::alloc::{GlobalAlloc, Layout, System};

/// Allocations from this size on are advised: smaller ones hold hardly any whole large page.
const LARGE: usize = 4 << 20;

/// An allocator; on Linux the kernel is advised to back large allocations by large pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct LargePages<A = System>(A);

impl LargePages {
    /// The system's allocator with this advice.
    pub const SYSTEM: Self = Self(System);
}

impl<A> LargePages<A> {
    /// Another allocator with this advice.
    pub const fn over(allocator: A) -> Self {
        Self(allocator)
    }
}

// SAFETY: memory comes from the other allocator as it is, and advice changes nothing of what it holds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for LargePages<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let memory = unsafe { self.0.alloc(layout) };
        advise(memory, layout.size());
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let memory = unsafe { self.0.alloc_zeroed(layout) };
        advise(memory, layout.size());
        memory
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        let memory = unsafe { self.0.realloc(memory, layout, size) };
        advise(memory, size);
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.0.dealloc(memory, layout) }
    }
}

/// Asks for large pages behind memory that has not been touched yet, where there is enough of it: a hint, for programs
/// with another allocator.
pub fn ask_for_large_pages<T>(memory: &mut [T]) {
    advise(memory.as_mut_ptr().cast(), size_of_val(memory));
}

/// Asks for large pages where an allocation is large. It is a wish: what the kernel makes of it does not matter.
#[cfg(target_os = "linux")]
fn advise(memory: *mut u8, size: usize) {
    const PAGE: usize = 4096;
    if size < LARGE || memory.is_null() {
        return;
    }
    let before = memory.align_offset(PAGE);
    let length = (size - before) / PAGE * PAGE;
    // SAFETY: the range lies within memory that was just allocated, and the advice leaves what it holds alone.
    unsafe { libc::madvise(memory.add(before).cast(), length, libc::MADV_HUGEPAGE) };
}

/// Gives memory that was freed back to the system, where the allocator can: the resident memory of the process is then
/// what is in use.
pub fn release_freed() {
    // SAFETY: the call touches nothing that is in use.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(target_os = "linux"))]
fn advise(_: *mut u8, size: usize) {
    let _ = size < LARGE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_keeps_what_it_holds_from_small_to_large_and_back() {
        let small = Layout::array::<u8>(1000).unwrap();
        // SAFETY: every layout is the one the memory was last given, and sizes are above 0.
        unsafe {
            let memory = LargePages::SYSTEM.alloc(small);
            (0..1000).for_each(|at| *memory.add(at) = at as u8);
            let memory = LargePages::SYSTEM.realloc(memory, small, 3 * LARGE);
            (0..1000).for_each(|at| assert_eq!(*memory.add(at), at as u8));
            *memory.add(3 * LARGE - 1) = 7;
            let large = Layout::array::<u8>(3 * LARGE).unwrap();
            let memory = LargePages::SYSTEM.realloc(memory, large, 1000);
            (0..1000).for_each(|at| assert_eq!(*memory.add(at), at as u8));
            LargePages::SYSTEM.dealloc(memory, small);
        }
    }

    #[test]
    fn large_memory_that_is_asked_for_empty_is_empty() {
        let layout = Layout::from_size_align(2 * LARGE + 5, 64).unwrap();
        // SAFETY: the layout has a size above 0 and is the one the memory is given back with.
        unsafe {
            let memory = LargePages::SYSTEM.alloc_zeroed(layout);
            assert!(std::slice::from_raw_parts(memory, layout.size()).iter().all(|x| *x == 0));
            LargePages::SYSTEM.dealloc(memory, layout);
        }
    }
}
