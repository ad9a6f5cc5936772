//! The reservation and the turn in every order that the memory model allows.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use hsakmt_core::queue::aql_ring::Turn;
use hsakmt_core::queue::pointers::SharedNumber;
use hsakmt_core::queue::reservation::take_places;

/// A number as the model keeps it, with the orderings that the library promises.
#[derive(Debug, Default)]
struct Number(AtomicU64);

impl SharedNumber for Number {
    fn load(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn replace(&self, current: u64, new: u64) -> Result<u64, u64> {
        self.0.compare_exchange_weak(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    fn swap(&self, new: u64) -> u64 {
        self.0.swap(new, Ordering::AcqRel)
    }

    fn raise(&self, floor: u64) {
        self.0.fetch_max(floor, Ordering::AcqRel);
    }
}

/// A ring of places without atomics: the model finds two that touch one at once.
struct Ring {
    written: Number,
    read: Number,
    places: Vec<UnsafeCell<u64>>,
    /// 1 where the place is valid.
    valid: Vec<AtomicU64>,
}

impl Ring {
    fn new(capacity: usize) -> Ring {
        Ring {
            written: Number::default(),
            read: Number::default(),
            places: (0..capacity).map(|_| UnsafeCell::new(0)).collect(),
            valid: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn produce(&self, value: u64) -> bool {
        let capacity = self.places.len() as u64;
        let Some(index) = take_places(&self.written, &self.read, capacity, 1) else {
            return false;
        };
        let place = (index % capacity) as usize;
        self.places[place].with_mut(|at| put(at, value));
        self.valid[place].store(1, Ordering::Release);
        true
    }

    /// Reads the place at the read index if it is valid.
    fn consume(&self) -> Option<u64> {
        let index = self.read.load();
        let place = (index % self.places.len() as u64) as usize;
        if self.valid[place].load(Ordering::Acquire) == 0 {
            return None;
        }
        let value = self.places[place].with(get);
        self.valid[place].store(0, Ordering::Relaxed);
        self.read.0.store(index + 1, Ordering::Release);
        Some(value)
    }
}

fn put(at: *mut u64, value: u64) {
    // SAFETY: the model stops at an access that another one may overlap.
    unsafe { at.write(value) }
}

fn get(at: *const u64) -> u64 {
    // SAFETY: as above.
    unsafe { at.read() }
}

/// Two producers, of two values and one, and a ring of one place that the engine
/// reads meanwhile; whoever finds the ring full tries no more.
#[test]
fn no_place_is_taken_twice_or_before_it_is_free() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let ring = Arc::new(Ring::new(1));
        let producers: Vec<_> = [(10, 2), (20, 1)]
            .map(|(base, count)| {
                let ring = Arc::clone(&ring);
                thread::spawn(move || (0..count).filter(|&n| ring.produce(base + n)).count())
            })
            .into_iter()
            .collect();
        let mut values: Vec<u64> = (0..2).filter_map(|_| ring.consume()).collect();
        let produced: usize = producers.into_iter().map(|thread| thread.join().unwrap()).sum();
        while let Some(value) = ring.consume() {
            values.push(value);
        }
        assert_eq!(values.len(), produced);
        assert!(produced >= 1, "there was room for one at least");
        for base in [10, 20] {
            let of_one: Vec<u64> =
                values.iter().copied().filter(|value| value / 10 * 10 == base).collect();
            assert!(of_one.is_sorted_by(|a, b| a < b), "{values:?}");
        }
    });
}

/// Four producers, one value each, two places, no engine: two get one.
#[test]
fn four_producers_share_what_there_is() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let ring = Arc::new(Ring::new(2));
        let others: Vec<_> = (1..4)
            .map(|value| {
                let ring = Arc::clone(&ring);
                thread::spawn(move || usize::from(ring.produce(value)))
            })
            .collect();
        let mut produced = usize::from(ring.produce(9));
        produced += others.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>();
        assert_eq!(produced, 2);
        let values = [ring.consume(), ring.consume()];
        assert!(values[0].is_some() && values[1].is_some() && values[0] != values[1]);
        assert_eq!(ring.consume(), None);
    });
}

/// Three threads bring a number each: what is told only rises, no two tell at once,
/// and the largest is told by the time all are back.
#[test]
fn a_turn_always_tells_the_largest() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let turn = Arc::new((Turn::<Number>::default(), UnsafeCell::new(0)));
        let raise = |number: u64, turn: &(Turn<Number>, UnsafeCell<u64>)| {
            turn.0.raise(number, |told| {
                turn.1.with_mut(|at| {
                    assert!(told > get(at), "only ever more");
                    put(at, told);
                });
            });
        };
        let others: Vec<_> = [3, 2]
            .map(|number| {
                let turn = Arc::clone(&turn);
                thread::spawn(move || raise(number, &turn))
            })
            .into_iter()
            .collect();
        raise(1, &turn);
        for thread in others {
            thread.join().unwrap();
        }
        turn.1.with(|at| assert_eq!(get(at), 3));
    });
}
