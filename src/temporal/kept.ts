import type { Client } from '@temporalio/client';

/** For a client. The names of every batch have room: all are walked over at each look. */
const KEPT_BYTES = 64 * 1_024 * 1_024;

/** What a batch asks for every few seconds, and was used last. */
export class Kept<T> {
  private readonly ofClient = new WeakMap<Client, Map<string, [value: Promise<T>, bytes: number]>>();

  get(client: Client, run: string, bytes: number, read: () => Promise<T>): Promise<T> {
    const all = this.ofClient.get(client) ?? new Map<string, [Promise<T>, number]>();
    this.ofClient.set(client, all);
    const known = all.get(run);
    const [value] = known ?? [read()];
    all.delete(run);
    all.set(run, known ?? [value, bytes]);
    if (known !== undefined) return value;
    value.catch(() => all.delete(run));
    let total = 0;
    for (const [each, [, its]] of [...all].reverse())
      if ((total += its) > KEPT_BYTES && each !== run) all.delete(each);
    return value;
  }
}
