/**
 * Calls a function for all items, with limited concurrency. After a failure no further item is taken, and those under way are
 * awaited: nothing happens any more once it has thrown.
 *
 * @returns what came of each, in the order of the items
 * @throws whatever `work` throws first
 */
export async function mapConcurrently<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  atATime: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const iterator = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  const results: R[] = [];
  const errors: unknown[] = [];
  let taken = 0;
  const worker = async (): Promise<void> => {
    try {
      while (errors.length === 0) {
        const index = taken++;
        const step = await iterator.next();
        if (step.done === true) return;
        results[index] = await work(step.value);
      }
    } catch (error) {
      errors.push(error);
    }
  };
  await Promise.all(Array.from({ length: atATime }, worker));
  if (errors.length > 0) throw errors[0];
  return results;
}
