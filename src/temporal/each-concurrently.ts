/**
 * Does the work for all items with limited concurrency. After a failure no further item is taken, and those under way are
 * awaited: nothing happens any more once it has thrown.
 */
export async function eachConcurrently<T>(
  items: Iterable<T> | AsyncIterable<T>,
  work: (item: T) => Promise<void>,
  atATime = 16,
): Promise<void> {
  const queue = (async function* () {
    yield* items;
  })();
  // A worker that throws closes the queue for all.
  const worker = async (): Promise<void> => {
    for await (const item of queue) await work(item);
  };
  const ends = await Promise.allSettled(Array.from({ length: atATime }, worker));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
