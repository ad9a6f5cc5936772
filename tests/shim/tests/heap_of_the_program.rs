//! The heap as the allocator of a whole program: this one, test harness and all.
//!
//! # Safety
//!
//! Children end by `_exit`.

use std::collections::HashMap;
use std::process::Command;

use hsakmt_linux_shim::heap::Heap;
use hsakmt_shim_tests::child::{FINE, cloned, forked};

#[global_allocator]
static HEAP: Heap = Heap;

#[test]
fn collections_threads_and_programs_work() {
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            std::thread::spawn(move || {
                let mut map: HashMap<String, Vec<u64>> = HashMap::new();
                for number in 0..20_000 {
                    map.entry(format!("{}", number % 301)).or_default().push(number * thread);
                }
                map.values().flatten().sum::<u64>()
            })
        })
        .collect();
    let sums: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let sum = (0..20_000).sum::<u64>();
    assert_eq!(sums, [0, sum, 2 * sum, 3 * sum]);

    let output = Command::new("/bin/echo").arg("hello").output().unwrap();
    assert_eq!(output.stdout, b"hello\n");
}

#[test]
fn forked_children_allocate_too() {
    let inherited: Vec<String> = (0..1000).map(|number| format!("{number}")).collect();
    for make in [forked, cloned] as [fn(Box<dyn FnOnce()>) -> _; 2] {
        let mut copy = inherited.clone();
        let end = make(Box::new(move || {
            for (number, text) in copy.iter_mut().enumerate() {
                text.push('!');
                assert_eq!(*text, format!("{number}!"));
            }
            copy.extend((0..5000).map(|number| number.to_string()));
            assert_eq!(copy.len(), 6000);
            drop(copy);
            assert_eq!(
                vec![1u8; 3 << 20].iter().map(|&byte| u32::from(byte)).sum::<u32>(),
                3 << 20
            );
        }));
        assert_eq!(end, FINE);
    }
    assert_eq!(inherited[999], "999");
}
