//! Tags: a number in the metadata of a buffer by which its exporter knows who was told
//! of it.
//!
//! The tag is the first word of the metadata, and is there if any metadata is. So a
//! buffer of a graphics driver, which keeps its own description there, has a tag
//! already, and is never given another one.

use super::ImportFailure;
use crate::error::{self, Error, Status};
use crate::memory::access::Access;
use crate::process::Render;
use crate::seam::Platform;
use crate::uapi::amdgpu::{GemMetadata, GemMetadataOp};

/// What an import has to do with a buffer's tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// Nothing.
    None,
    /// The buffer gets this one, unless it has one, which is told.
    Offered(u32),
    /// The buffer must have this one; 0 is that of a buffer without.
    Expected(u32),
}

/// Bytes of a tag.
const SIZE: u32 = size_of::<u32>() as u32;

/// The tag in a buffer's metadata, if there is any.
fn tag_in(metadata: &GemMetadata) -> Option<u32> {
    (metadata.data_size_bytes != 0).then(|| metadata.data.first().copied().unwrap_or(0))
}

/// The same metadata with this tag, or without one; whatever else is there stays.
fn with_tag(mut metadata: GemMetadata, tag: Option<u32>) -> GemMetadata {
    metadata.op = GemMetadataOp::SET_METADATA;
    if let Some(word) = metadata.data.first_mut() {
        *word = tag.unwrap_or(0);
    }
    let alone = metadata.data_size_bytes <= SIZE;
    metadata.data_size_bytes = match (tag, alone) {
        (None, true) => 0,
        (Some(_), true) => SIZE,
        (_, false) => metadata.data_size_bytes,
    };
    metadata
}

impl<P: Platform> Access<'_, P> {
    fn metadata_of(&self, render: &Render<P>, handle: u32) -> Result<GemMetadata, Error> {
        let op = GemMetadataOp::GET_METADATA;
        let mut block = GemMetadata { handle, op, ..GemMetadata::default() };
        let object = error::Object::Handle(u64::from(handle));
        let status = Status::INVALID_HANDLE;
        self.channel.execute_render(render, &mut block, &mut [], status, object)?;
        Ok(GemMetadata { handle, ..block })
    }

    pub(super) fn put_metadata(
        &self,
        render: &Render<P>,
        mut metadata: GemMetadata,
    ) -> Result<(), Error> {
        metadata.op = GemMetadataOp::SET_METADATA;
        let object = error::Object::Handle(u64::from(metadata.handle));
        let status = Status::ERROR;
        self.channel.execute_render(render, &mut metadata, &mut [], status, object).map(drop)
    }

    /// Does what an import has to do with the tag; which one the buffer has then.
    pub(super) fn settle_tag(
        &self,
        render: &Render<P>,
        handle: u32,
        tag: Tag,
    ) -> Result<u32, ImportFailure> {
        let (wanted, may_give) = match tag {
            Tag::None => return Ok(0),
            Tag::Offered(tag) => (tag, true),
            Tag::Expected(tag) => (tag, false),
        };
        let metadata = self.metadata_of(render, handle)?;
        match (tag_in(&metadata), may_give) {
            (Some(there), true) => Ok(there),
            (None, true) => {
                self.put_metadata(render, with_tag(metadata, Some(wanted)))?;
                Ok(wanted)
            }
            (there, false) if there.unwrap_or(0) == wanted => Ok(wanted),
            (there, false) => Err(ImportFailure {
                error: Error::argument(1),
                other_tag: Some(there.unwrap_or(0)),
            }),
        }
    }

    /// Takes the tag away; what the metadata was before, if there was a tag.
    pub(super) fn take_tag_away(
        &self,
        render: &Render<P>,
        handle: u32,
    ) -> Result<Option<GemMetadata>, Error> {
        let metadata = self.metadata_of(render, handle)?;
        if tag_in(&metadata).is_none() {
            return Ok(None);
        }
        self.put_metadata(render, with_tag(metadata, None))?;
        Ok(Some(metadata))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(size: u32, words: [u32; 2]) -> GemMetadata {
        let mut metadata =
            GemMetadata { data_size_bytes: size, tiling_info: 5, ..GemMetadata::default() };
        metadata.data[..2].copy_from_slice(&words);
        metadata
    }

    #[test]
    fn a_tag_is_there_if_metadata_is() {
        assert_eq!(tag_in(&metadata(0, [7, 0])), None);
        assert_eq!(tag_in(&metadata(4, [7, 0])), Some(7));
        assert_eq!(tag_in(&metadata(4, [0, 0])), Some(0));
    }

    #[test]
    fn what_is_beside_a_tag_stays() {
        let given = with_tag(metadata(0, [0, 0]), Some(7));
        assert_eq!((given.data_size_bytes, given.data[0], given.tiling_info), (4, 7, 5));
        let taken = with_tag(given, None);
        assert_eq!((taken.data_size_bytes, taken.data[0], taken.tiling_info), (0, 0, 5));
        let taken = with_tag(metadata(8, [7, 9]), None);
        assert_eq!((taken.data_size_bytes, &taken.data[..2]), (8, &[0, 9][..]));
    }
}
