/** Where a batch leaves the digest of its items, by which the same batch is told from another one of the same id. */
export const MEMO_ITEMS_DIGEST = 'followUpBatchItemsSha256';
