//! A device whose closing is seen.

use super::driver::DeviceToken;

/// What sees the closing of an [`ObservedDevice`].
pub trait CloseObserver {
    /// Called instead of a bare drop; has to call `close`, which drops the
    /// device within.
    fn observe_close(&self, token: DeviceToken, close: impl FnOnce());
}

/// A device of the wrapped driver together with who wants to know of its end.
///
/// Dropping it closes the device within and tells the observer.
#[derive(Debug)]
pub struct ObservedDevice<D, O: CloseObserver> {
    /// `None` only between [`into_inner`](Self::into_inner) and the drop.
    device: Option<D>,
    token: DeviceToken,
    observer: O,
}

impl<D, O: CloseObserver> ObservedDevice<D, O> {
    pub(super) fn new(device: D, token: DeviceToken, observer: O) -> Self {
        ObservedDevice { device: Some(device), token, observer }
    }

    /// The device within, always there for whoever holds a reference.
    pub(super) fn get(&self) -> Option<&D> {
        self.device.as_ref()
    }

    pub(super) fn token(&self) -> DeviceToken {
        self.token
    }

    /// The device within, which stays open and is observed no longer.
    pub(super) fn into_inner(mut self) -> Option<D> {
        self.device.take()
    }
}

impl<D, O: CloseObserver> Drop for ObservedDevice<D, O> {
    fn drop(&mut self) {
        if let Some(device) = self.device.take() {
            self.observer.observe_close(self.token, || drop(device));
        }
    }
}
