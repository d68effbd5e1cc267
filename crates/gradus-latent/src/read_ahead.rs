//! Blocks of rows that are read while the block before them is worked on.

use gradus_base::Result;
use gradus_data::RowBlocks;
use std::sync::{Mutex, PoisonError, mpsc};

/// Reads the remaining rows and calls `work` with each block that is not empty, until there are no more or `work` returns
/// false. The memory that `work` leaves in the block is used again.
pub(crate) fn each_block(
    rows: &mut dyn RowBlocks,
    mut work: impl FnMut(&mut Vec<f64>) -> Result<bool>,
) -> Result<()> {
    let used: &Mutex<Vec<Vec<f64>>> = &Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::sync_channel::<Result<Vec<f64>>>(1);
        scope.spawn(move || {
            loop {
                let block = used.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let mut block = block.unwrap_or_default();
                let read = rows.next_block(&mut block);
                let last = read.is_err() || block.is_empty();
                if send.send(read.map(|()| block)).is_err() || last {
                    return;
                }
            }
        });
        for block in receive {
            let mut block = block?;
            if !block.is_empty() && !work(&mut block)? {
                return Ok(());
            }
            used.lock().unwrap_or_else(PoisonError::into_inner).push(block);
        }
        Ok(())
    })
}
