//! What [`Gather`](crate::Gather), [`Pack`](crate::Pack) and [`Unpack`](crate::Unpack) have in common: products, and the rooms of the memories that they
//! read and write.

use junctura_model::{Code, Error, Result};

use crate::elements::{Change, with_op};
use crate::part::Message;
use crate::portable;
use crate::product::Product;

#[derive(Clone, Debug)]
pub(crate) struct Work {
    products: Vec<Product>,
    change: Change,
    /// Who each memory that is read belongs to, and its elements.
    read: Vec<(u64, u64)>,
    /// The same of what is written.
    written: (u64, u64),
}

/// A memory that is written by several threads, each its own elements.
#[derive(Clone, Copy)]
pub(crate) struct Into(pub(crate) *mut u8);

// SAFETY: a pointer does nothing by itself; threads are given different elements of it.
unsafe impl Send for Into {}

impl Work {
    /// # Errors
    /// Those of [`Product::check`].
    pub(crate) fn new(
        products: Vec<Product>,
        change: Change,
        read: Vec<(u64, u64)>,
        written: (u64, u64),
    ) -> Result<Self> {
        let rooms: Vec<u64> = read.iter().map(|(_, room)| *room).collect();
        for product in &products {
            product.check(&rooms, written.1)?;
        }
        Ok(Self {
            products,
            change,
            read,
            written,
        })
    }

    pub(crate) fn elements(&self) -> u64 {
        self.products.iter().map(Product::elements).sum()
    }

    /// What lies in so many elements of a message, from `first` on: the same work with a message that has these alone.
    ///
    /// # Errors
    /// `InvalidArgument` when the message has not so many.
    pub(crate) fn part(&self, side: Message, first: u64, count: u64) -> Result<Self> {
        let message = match side {
            Message::Read => self.read[0].1,
            Message::Written => self.written.1,
        };
        let end = first.checked_add(count).filter(|&end| end <= message);
        let Some(end) = end else {
            let cause = format!("{count} elements from {first} on, of a message of {message}");
            return Err(Error::new(Code::InvalidArgument, "message", cause));
        };
        let (mut read, mut written) = (self.read.clone(), self.written);
        match side {
            Message::Read => read[0].1 = count,
            Message::Written => written.1 = count,
        }
        Self::new(side.part(&self.products, &(first..end)), self.change, read, written)
    }

    /// Bytes of an element that is read, and of one that is written.
    pub(crate) fn widths(&self) -> (usize, usize) {
        with_op!(self.change, O => (<O as crate::elements::Op>::FROM, <O as crate::elements::Op>::TO))
    }

    pub(crate) fn run(&self, pieces: &[&[u8]], into: &mut [u8], threads: usize) -> Result<()> {
        let (from_bytes, to_bytes) = self.widths();
        if pieces.len() != self.read.len() {
            let cause = format!("{} for {} ranks", pieces.len(), self.read.len());
            return Err(Error::new(Code::InvalidArgument, "pieces", cause));
        }
        for (piece, &read) in pieces.iter().zip(&self.read) {
            check_length(read, from_bytes, piece.len())?;
        }
        check_length(self.written, to_bytes, into.len())?;
        let into = Into(into.as_mut_ptr());
        let threads = threads.max(1) as u64;
        std::thread::scope(|scope| {
            for share in 1..threads {
                scope.spawn(move || self.share(pieces, into, (share, threads)));
            }
            self.share(pieces, into, (0, threads));
        });
        Ok(())
    }

    /// One thread's share: of each product, that part of the indices of its slowest dimension.
    fn share(&self, pieces: &[&[u8]], into: Into, (share, of): (u64, u64)) {
        for product in &self.products {
            let indices = product.dims[0].elements();
            let from = (u128::from(indices) * u128::from(share) / u128::from(of)) as u64;
            let to = (u128::from(indices) * u128::from(share + 1) / u128::from(of)) as u64;
            // SAFETY: `Product::check` compared all places with the rooms, and `run` those with the lengths. No two shares have an
            // index in common, and no two products of a plan an element.
            with_op!(self.change, O => unsafe { portable::copy::<O>(product, pieces, into, from..to) });
        }
    }
}

fn check_length((rank, room): (u64, u64), bytes: usize, length: usize) -> Result<()> {
    if u128::from(room) * bytes as u128 == length as u128 {
        return Ok(());
    }
    let cause = format!("rank {rank} has {room} elements of {bytes} bytes; {length} bytes were given");
    Err(Error::new(Code::InvalidArgument, "length", cause))
}
