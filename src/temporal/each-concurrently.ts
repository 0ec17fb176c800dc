/**
 * Calls `work` for each item with limited concurrency. After a failure, `work` is not called for further items. The function
 * rejects only after all work in progress has ended.
 *
 * `p-map` 7 rejects while other work continues, which could start a follow-up after the activity has failed. In addition, `p-map`
 * is only an ES module, which a caller's Jest with CommonJS can't load.
 */
export async function eachConcurrently<T>(
  items: Iterable<T> | AsyncIterable<T>,
  work: (item: T) => Promise<void>,
  concurrency = 16,
): Promise<void> {
  const source = (async function* () {
    yield* items;
  })();
  // If one loop throws, it closes the generator for all loops.
  const loop = async (): Promise<void> => {
    for await (const item of source) await work(item);
  };
  const results = await Promise.allSettled(Array.from({ length: concurrency }, loop));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** Groups the items of a list. The last group may be smaller. */
export async function* groupsOf<T>(
  items: AsyncIterable<T>,
  size: number,
): AsyncGenerator<T[], void, undefined> {
  let group: T[] = [];
  for await (const item of items) {
    group.push(item);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}
