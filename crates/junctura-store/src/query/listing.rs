//! Lists of objects, and access to their bytes.

use std::fmt;
use std::io::BufReader;
use std::ops::Range;
use std::sync::Arc;

use junctura_memory::FileMap;
use junctura_model::{AttrId, Code, Described, Error, Record, Result, Schema, Version};

use crate::catalogue::table::{KeyTexts, ObjectLocation, RowTable};
use crate::data::buffer::{self, ReadBuffer, reserved};
use crate::data::packing::{self, PackedObject, PayloadCodec};
use crate::data::read_exact;
use crate::data::unpacked::{FRAME_BYTES, FilePieces, KeptBytes, UnpackStream, UnpackedCache, WHOLE_BYTES_MAX};
use crate::query::snapshot::Snapshot;
use crate::storage::{StorageFile, refused};
use crate::store::Store;

/// Objects of a snapshot, in the order in which they were committed.
#[derive(Clone, Debug)]
pub struct Listing {
    snapshot: Snapshot,
    parts: Vec<ListingPart>,
    unpacked: Arc<UnpackedCache>,
}

/// Rows of one table.
#[derive(Clone, Debug)]
pub(crate) struct ListingPart {
    schema: usize,
    table: Arc<RowTable>,
    rows: Vec<u32>,
}

/// One object of a listing.
#[derive(Clone, Copy, Debug)]
pub struct StoredObject<'a> {
    listing: &'a Listing,
    part: &'a ListingPart,
    row: u32,
}

/// The location of an object's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLocation {
    /// The file, by its name in the store.
    pub file: Arc<str>,
    /// The offset of the object's first byte in the file.
    pub offset: u64,
    /// The number of stored bytes.
    pub length: u64,
    /// The packing codec, if packed: the object then has more bytes.
    pub codec: Option<PayloadCodec>,
}

/// `FILE:OFFSET+LENGTH`, followed by ` (CODEC)` if packed.
impl fmt::Display for StoredLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}+{}", self.file, self.offset, self.length)?;
        match self.codec {
            Some(codec) => write!(f, " ({})", codec.name()),
            None => Ok(()),
        }
    }
}

impl Listing {
    pub(crate) fn new(snapshot: Snapshot, parts: Vec<ListingPart>) -> Self {
        Self {
            snapshot,
            parts,
            unpacked: Arc::default(),
        }
    }

    pub(crate) fn store(&self) -> &Store {
        self.snapshot.store()
    }

    /// Returns only objects of commits later than this one: the new objects.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// # use junctura_store::{StoreLayout, Store};
    /// # fn main() -> junctura_model::Result<()> {
    /// # let store = Store::create_url("memory:", &[Schema::builtin("free").unwrap()], &StoreLayout::default())?;
    /// # let mut writer = store.writer()?;
    /// # writer.archive([("name", "old")], b"")?;
    /// # writer.flush()?;
    /// let seen = store.snapshot()?.commit();
    /// writer.archive([("name", "new")], b"bytes")?;
    /// writer.flush()?;
    /// for object in &store.snapshot()?.list_all("")?.after(seen) {
    ///     println!("{}: {} lies at {}", object.index(), object.key(), object.location());
    /// #   assert_eq!((object.key(), object.commit()), ("{space=default}{}{name=new}".into(), seen + 1));
    /// }
    /// # assert_eq!(store.snapshot()?.list("")?.after(seen).len(), 1);
    /// # assert!(store.snapshot()?.list("")?.after(seen + 1).is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn after(self, commit: u64) -> Self {
        self.only(|object| object.commit() > commit)
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.rows.len()).sum()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the total size of the objects in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.iter().map(|object| object.bytes()).sum()
    }

    /// Returns the total number of stored bytes, which may be packed.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.iter().map(|object| object.place().length).sum()
    }

    /// Returns one of the objects, counted from 0.
    #[must_use]
    pub fn get(&self, mut index: usize) -> Option<StoredObject<'_>> {
        for part in &self.parts {
            match part.rows.get(index) {
                Some(&row) => {
                    let listing = self;
                    return Some(StoredObject { listing, part, row });
                }
                None => index -= part.rows.len(),
            }
        }
        None
    }

    /// Iterates over the objects.
    pub fn iter(&self) -> impl Iterator<Item = StoredObject<'_>> + Clone {
        self.parts.iter().flat_map(move |part| self.objects_of(part))
    }

    /// Passes the canonical text of each key, and the object. Faster than [`StoredObject::key`] for each object.
    pub fn for_each_key(&self, mut take: impl FnMut(&str, StoredObject<'_>)) {
        let mut text = String::new();
        for part in &self.parts {
            let keys = KeyTexts::new(&part.table, self.schema(part));
            for &row in &part.rows {
                text.clear();
                keys.write(row, &mut text);
                let listing = self;
                take(&text, StoredObject { listing, part, row });
            }
        }
    }

    /// Returns the objects in the order of their bytes on the disk, which is the fastest order to read many objects.
    #[must_use]
    pub fn by_location(&self) -> Vec<StoredObject<'_>> {
        let mut objects: Vec<StoredObject<'_>> = self.iter().collect();
        objects.sort_by(|one, other| {
            let place =
                |object: &StoredObject<'_>| (Arc::clone(object.part.table.file_of(object.row)), object.place().offset);
            place(one).cmp(&place(other))
        });
        objects
    }

    /// Returns the schemas of the store: [`StoredObject::schema_index`] is an index into this slice.
    #[must_use]
    pub fn schemas(&self) -> &[Arc<Schema>] {
        self.snapshot.schemas()
    }

    /// Returns how many parallel reads increase the throughput at the location of its objects.
    pub(crate) fn reads_at_once(&self) -> usize {
        let files = self.parts.iter().flat_map(|part| part.table.files());
        files
            .map(|file| self.store().disk().reads_at_once(file))
            .max()
            .unwrap_or(1)
    }

    /// Keeps only objects for which this returns true.
    pub(crate) fn only(mut self, is_one: impl Fn(&StoredObject<'_>) -> bool) -> Self {
        let rows: Vec<Vec<u32>> = self
            .parts
            .iter()
            .map(|part| self.objects_of(part).filter(&is_one).map(|object| object.row).collect())
            .collect();
        for (part, rows) in self.parts.iter_mut().zip(rows) {
            part.rows = rows;
        }
        self.parts.retain(|part| !part.rows.is_empty());
        self.unpacked = Arc::default();
        self
    }

    /// Returns its parts.
    pub(crate) fn whole_parts(&self) -> &[ListingPart] {
        &self.parts
    }

    /// Returns the objects of one of its parts.
    pub(crate) fn objects_of<'a>(&'a self, part: &'a ListingPart) -> impl Iterator<Item = StoredObject<'a>> + Clone {
        let listing = self;
        part.rows.iter().map(move |&row| StoredObject { listing, part, row })
    }

    /// Returns the rows of each table: the number of their schema, the table, and the row indices.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, &RowTable, &[u32])> + Clone {
        self.parts.iter().map(|part| (part.schema, &*part.table, &*part.rows))
    }

    /// Returns the snapshot of the objects.
    #[cfg(feature = "parquet")]
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the row numbers of each schema, ascending.
    pub(crate) fn numbers(&self) -> Vec<Vec<u64>> {
        let mut numbers = vec![Vec::new(); self.store().schemas().len()];
        for part in &self.parts {
            let rows = part.rows.iter();
            numbers[part.schema].extend(rows.map(|&row| part.table.number(row)));
        }
        numbers
    }

    pub(crate) fn schema(&self, part: &ListingPart) -> &Schema {
        &self.store().schemas()[part.schema]
    }
}

impl ListingPart {
    /// Creates a part of rows of a table of this schema, ascending.
    pub(crate) fn new(schema: usize, table: Arc<RowTable>, rows: Vec<u32>) -> Self {
        Self { schema, table, rows }
    }

    pub(crate) fn table(&self) -> &RowTable {
        &self.table
    }
}

impl<'a> IntoIterator for &'a Listing {
    type Item = StoredObject<'a>;
    type IntoIter = std::vec::IntoIter<StoredObject<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().collect::<Vec<_>>().into_iter()
    }
}

impl StoredObject<'_> {
    /// Returns the canonical text of its key.
    #[must_use]
    pub fn key(&self) -> String {
        let mut text = String::new();
        self.schema().key_of(self.record().as_ref(), &mut text);
        text
    }

    /// Returns its attributes.
    #[must_use]
    pub fn record(&self) -> Record {
        self.part.table.record(self.row)
    }

    /// Returns its description.
    #[must_use]
    pub fn describe(&self) -> Described {
        let schema = &self.listing.snapshot.store().schemas()[self.part.schema];
        Described::new(schema, self.record())
    }

    /// Returns the canonical text of one attribute, if it has it.
    #[must_use]
    pub fn value(&self, id: AttrId) -> Option<&str> {
        self.part.table.column(id, "")?.text(self.row)
    }

    /// Returns the index of its schema among the store's schemas.
    #[must_use]
    pub fn schema_index(&self) -> usize {
        self.part.schema
    }

    /// Returns its schema.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        self.listing.schema(self.part)
    }

    /// Returns the size of its payload in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.place().object_length()
    }

    /// Returns the number of its commit: of two objects with one key, the one with the higher number masks the other.
    #[must_use]
    pub fn commit(&self) -> u64 {
        self.part.table.commit(self.row)
    }

    /// Returns its version in a pool, if a pool archived it.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.part.table.version(self.row)
    }

    /// Returns the location of its bytes.
    #[must_use]
    pub fn location(&self) -> StoredLocation {
        let place = self.place();
        StoredLocation {
            file: Arc::clone(self.part.table.file_of(self.row)),
            offset: place.offset,
            length: place.length,
            codec: place.packed.map(|packed| packed.codec),
        }
    }

    /// Returns the [URI](Store::uri) of the file with its bytes, for other programs.
    #[must_use]
    pub fn uri(&self) -> String {
        self.listing.store().uri(self.file_name())
    }

    /// Returns the CRC-32C of its bytes.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        self.place().checksum
    }

    /// Reads its bytes, as they were archived, into new memory. Blocks on the disk.
    ///
    /// # Errors
    /// `Corrupt` if they are missing or do not match their checksum; `TooLarge` if memory is insufficient; `Expired` if
    /// the snapshot has expired; errors of system calls.
    pub fn read(&self) -> Result<Vec<u8>> {
        let read = self.read_whole();
        self.snapshot().check_age()?;
        read
    }

    fn read_whole(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.place().packed.is_some() && self.bytes() > 0 {
            self.read_stored(|length| in_new(&mut bytes, length))?;
            return self.unpacked(&bytes);
        }
        self.read_verified(|length| in_new(&mut bytes, length))?;
        Ok(bytes)
    }

    /// As [`Self::read`], into the caller's memory, which must have exactly [`Self::bytes`] bytes.
    ///
    /// # Errors
    /// As [`Self::read`]; `InvalidArgument` for memory of another length. After an error the content is undefined.
    pub fn read_exact(&self, into: &mut [u8]) -> Result<()> {
        if into.len() as u64 != self.bytes() {
            let cause = format!("room for {} bytes, and it has {}", into.len(), self.bytes());
            return Err(Error::new(Code::InvalidArgument, self.key(), cause));
        }
        let read = self.read_verified(|_| Ok(into));
        self.snapshot().check_age()?;
        read
    }

    /// As [`Self::read`], into the caller's buffer, whose memory is reused.
    ///
    /// # Errors
    /// As [`Self::read`]; after an error the content of the buffer is undefined.
    pub fn read_into(&self, buffer: &mut ReadBuffer) -> Result<()> {
        let read = self.read_verified(|length| buffer.room(length));
        // Reads of an expired snapshot are undefined; the age is the error to report.
        self.snapshot().check_age()?;
        read
    }

    /// Reads some of its bytes, from an offset: as many as `bytes` has space for and the object has; returns their
    /// number. They are not verified, because the checksum covers the whole object.
    ///
    /// A packed object of up to 1 GiB is unpacked, and verified, as a whole; its bytes are cached until those of other
    /// objects of the listing replace them. A larger object, or one for which memory is insufficient, is unpacked as a
    /// stream: sequential reads cost only the bytes read, and a read before the end of the last read restarts the
    /// frame.
    ///
    /// # Errors
    /// As [`Self::read`], except that corruption is not detected.
    pub fn read_range(&self, from: u64, bytes: &mut [u8]) -> Result<usize> {
        let read = self.read_part(from, bytes);
        self.snapshot().check_age()?;
        read
    }

    fn read_part(&self, from: u64, bytes: &mut [u8]) -> Result<usize> {
        let place = self.place();
        let left = usize::try_from(self.bytes().saturating_sub(from)).unwrap_or(usize::MAX);
        let count = left.min(bytes.len());
        if count == 0 {
            return Ok(0);
        }
        if place.packed.is_some() {
            match &*self.kept()? {
                KeptBytes::Whole(whole) => bytes[..count].copy_from_slice(&whole[from as usize..][..count]),
                KeptBytes::Stream(stream) => self.read_on(&mut stream.lock(), from, &mut bytes[..count])?,
            }
        } else {
            let (file, name) = self.file()?;
            read_exact(&*file, name, &mut bytes[..count], place.offset + from)?;
        }
        Ok(count)
    }

    /// Verifies its bytes: reads all, in a constant amount of memory.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn check(&self) -> Result<()> {
        let verified = match self.bytes() {
            0 => Ok(()),
            _ => self.verify_stored(),
        };
        self.snapshot().check_age()?;
        verified
    }

    /// Verifies that it has as many bytes as the catalogue claims, for a caller that is to reserve memory for them.
    /// Free of cost, except for a packed object of more than 64 MiB that is at least 16 times as large as its frame:
    /// this frame is unpacked as a stream.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn check_length(&self) -> Result<()> {
        let place = self.place();
        match place.packed {
            Some(packed) if packing::is_excessive(packed, place.length) => self.check(),
            _ if place.length == 0 => Ok(()),
            _ => self.file().map(|_| ()),
        }
    }

    /// Returns its bytes, or a stream, which are cached with the listing. Threads do not wait for each other.
    fn kept(&self) -> Result<Arc<KeptBytes>> {
        let (index, unpacked) = (self.index(), &self.listing.unpacked);
        if let Some(known) = unpacked.get(index) {
            return Ok(known);
        }
        let kept = if self.bytes() > WHOLE_BYTES_MAX {
            KeptBytes::stream()
        } else {
            match self.read_whole() {
                Ok(bytes) => KeptBytes::Whole(bytes),
                Err(error) if error.code() == Code::TooLarge => KeptBytes::stream(),
                Err(error) => return Err(error),
            }
        };
        Ok(unpacked.keep(index, kept))
    }

    /// Reads from a stream of its bytes, which is restarted if it is past the requested offset.
    fn read_on(&self, stream: &mut Option<UnpackStream>, from: u64, into: &mut [u8]) -> Result<()> {
        let mut current = match stream.take().filter(|stream| stream.at() <= from) {
            Some(current) => current,
            None => self.stream()?,
        };
        match current.read_exact_at(from, into) {
            Ok(()) => {
                *stream = Some(current);
                Ok(())
            }
            Err(error) => Err(match current.refused() {
                Some(error) => self.closed(refused(&**self.file_name(), "cannot be read", error)),
                None => self.garbled(&error.to_string()),
            }),
        }
    }

    fn stream(&self) -> Result<UnpackStream> {
        let place = self.place();
        let Some(packed) = place.packed else {
            return Err(self.garbled("it is not packed"));
        };
        let (file, _) = self.file()?;
        UnpackStream::new(packed.codec, FilePieces::new(file, &place)).map_err(|error| self.garbled(&error.to_string()))
    }

    /// Returns the map that contains it, and the range; `None` if its bytes must be read.
    pub(crate) fn place_in_map(&self) -> Result<Option<(Arc<FileMap>, Range<u64>)>> {
        let place = self.place();
        let range = place.offset..place.offset + place.length;
        let map = match place {
            ObjectLocation { length: 0, .. } | ObjectLocation { packed: Some(_), .. } => None,
            _ => {
                let (file, name) = self.file()?;
                self.listing.store().files().map(name, &file, range.end)
            }
        };
        Ok(map.map(|map| (map, range)))
    }

    /// Reads it into the memory that `room` returns once its length is known to be valid.
    pub(crate) fn read_verified<'b>(&self, room: impl FnOnce(usize) -> Result<&'b mut [u8]>) -> Result<()> {
        let place = self.place();
        if place.object_length() == 0 {
            // It may have no file.
            return room(0).map(|_| ());
        }
        if place.packed.is_some() {
            let mut frame = Vec::new();
            self.read_stored(|length| in_new(&mut frame, length))?;
            return self.unpack_verified(&frame, room);
        }
        self.verify(self.read_stored(room)?)
    }

    /// Reads its stored bytes, packed or not, into the memory that `room` returns once the file is known to have that
    /// many bytes.
    pub(crate) fn read_stored<'b>(&self, room: impl FnOnce(usize) -> Result<&'b mut [u8]>) -> Result<&'b mut [u8]> {
        let place = self.place();
        let (file, name) = self.file()?;
        let bytes = room(usize::try_from(place.length).map_err(|_| too_large(place.length))?)?;
        match read_exact(&*file, name, bytes, place.offset) {
            Ok(()) => Ok(bytes),
            Err(error) => Err(self.closed(error)),
        }
    }

    /// Unpacks it into the memory that `room` returns once it is known that it can have so many bytes.
    fn unpack_verified<'b>(&self, frame: &[u8], room: impl FnOnce(usize) -> Result<&'b mut [u8]>) -> Result<()> {
        let packed = self.packed(frame)?;
        self.check_excess(packed, frame)?;
        let bytes = room(usize::try_from(packed.length).map_err(|_| too_large(packed.length))?)?;
        packing::unpack(packed.codec, frame, bytes).map_err(|cause| self.garbled(&cause))?;
        self.verify(bytes)
    }

    /// Unpacks it into new memory.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn unpacked(&self, frame: &[u8]) -> Result<Vec<u8>> {
        let packed = self.packed(frame)?;
        self.check_excess(packed, frame)?;
        let mut bytes = reserved(usize::try_from(packed.length).map_err(|_| too_large(packed.length))?)?;
        packing::unpack_reserved(packed, frame, &mut bytes).map_err(|cause| self.garbled(&cause))?;
        self.verify(&bytes)?;
        Ok(bytes)
    }

    /// Verifies that a frame contains the bytes that were archived, by unpacking it piece by piece.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn verify_packed(&self, frame: &[u8]) -> Result<()> {
        let packed = self.packed(frame)?;
        let found = packing::checksum_of(packed, frame).map_err(|cause| self.garbled(&cause))?;
        self.verify_checksum(found)
    }

    /// Verifies its stored bytes in a constant amount of memory.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn verify_stored(&self) -> Result<()> {
        let place = self.place();
        let (file, name) = self.file()?;
        let mut pieces = FilePieces::new(file, &place);
        let found = match place.packed {
            Some(packed) => {
                let summed = packing::checksum_of(packed, BufReader::with_capacity(FRAME_BYTES, &mut pieces));
                summed.map_err(|cause| match pieces.refused() {
                    // An unreadable file does not mean that the frame is damaged.
                    Some(error) => self.closed(refused(&**name, "cannot be read", error)),
                    None => self.garbled(&cause),
                })?
            }
            None => match packing::sum(&mut pieces, place.length) {
                Ok((found, length)) if length == place.length => found,
                Ok(_) => {
                    return Err(self.closed(Error::new(Code::Corrupt, self.key(), format!("{name} is too short"))));
                }
                Err(error) => {
                    let error = pieces.refused().unwrap_or(&error);
                    return Err(self.closed(refused(&**name, "cannot be read", error)));
                }
            },
        };
        self.verify_checksum(found)
    }

    /// Returns its packing, if a frame can have that many bytes.
    fn packed(&self, frame: &[u8]) -> Result<PackedObject> {
        let Some(packed) = self.place().packed else {
            return Err(self.garbled("it is not packed"));
        };
        if !packing::can_be(packed, frame) {
            return Err(self.garbled(&format!("it has not {} bytes", packed.length)));
        }
        Ok(packed)
    }

    /// Checks an object that claims to be much larger than its frame, before memory is reserved.
    fn check_excess(&self, packed: PackedObject, frame: &[u8]) -> Result<()> {
        if packing::is_excessive(packed, frame.len() as u64) {
            return self.verify_packed(frame);
        }
        Ok(())
    }

    fn garbled(&self, cause: &str) -> Error {
        let cause = format!("the bytes at {} cannot be unpacked: {cause}", self.location());
        self.closed(Error::new(Code::Corrupt, self.key(), cause))
    }

    /// Verifies that these are the bytes that were archived.
    pub(crate) fn verify(&self, bytes: &[u8]) -> Result<()> {
        self.verify_checksum(crate::checksum(bytes))
    }

    fn verify_checksum(&self, found: u32) -> Result<()> {
        let place = self.place();
        if found == place.checksum {
            return Ok(());
        }
        let cause = format!(
            "bytes {} to {} of {} have the checksum {found:08x} and were archived with {:08x}",
            place.offset,
            place.offset + place.length,
            self.file_name(),
            place.checksum
        );
        Err(self.closed(Error::new(Code::Corrupt, self.key(), cause)))
    }

    /// Closes its file, so that the next reader opens it again: it may be repaired under the same name.
    fn closed(&self, error: Error) -> Error {
        self.listing.store().files().close(self.file_name());
        error
    }

    /// Returns the file with all its bytes.
    pub(crate) fn file(&self) -> Result<(Arc<dyn StorageFile>, &Arc<str>)> {
        let place = self.place();
        let name = self.part.table.file_of(self.row);
        let end = self.part.table.end_of_file(self.row);
        let store = self.listing.store();
        let file = store.files().open(store.disk(), name, end);
        let file = file.map_err(|error| match error.code() {
            Code::NotFound => Error::new(Code::Corrupt, self.key(), format!("its file is missing: {error}")),
            _ => error,
        })?;
        // A damaged catalogue must not cause a reservation of more memory than the file has bytes.
        let left = file
            .len()
            .map_err(|error| refused(&**name, "cannot be looked at", &error))?;
        if left < place.offset || left - place.offset < place.length {
            let cause = format!(
                "{name} has {left} bytes, and it ends at byte {}",
                place.offset + place.length
            );
            return Err(self.closed(Error::new(Code::Corrupt, self.key(), cause)));
        }
        Ok((file, name))
    }

    /// Returns its index in its listing, from 0: [`Listing::get`] returns it.
    #[must_use]
    pub fn index(&self) -> usize {
        let before = self
            .listing
            .parts
            .iter()
            .take_while(|part| !std::ptr::eq(*part, self.part));
        let before: usize = before.map(|part| part.rows.len()).sum();
        before + self.part.rows.partition_point(|&row| row < self.row)
    }

    /// Returns its snapshot.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.listing.snapshot
    }

    /// Returns its row in the table of its part.
    pub(crate) fn row(&self) -> u32 {
        self.row
    }

    /// Returns its number among all objects ever committed of its schema.
    pub(crate) fn number(&self) -> u64 {
        self.part.table.number(self.row)
    }

    /// Returns the name of the file with its bytes.
    pub(crate) fn file_name(&self) -> &Arc<str> {
        self.part.table.file_of(self.row)
    }

    pub(crate) fn place(&self) -> ObjectLocation {
        self.part.table.place(self.row)
    }
}

fn in_new(memory: &mut Vec<u8>, length: usize) -> Result<&mut [u8]> {
    *memory = buffer::room(length)?;
    Ok(memory)
}

fn too_large(bytes: u64) -> Error {
    Error::new(Code::TooLarge, "object", format!("{bytes} bytes"))
}
