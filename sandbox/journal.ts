import { EventEmitter, once } from 'node:events';
import type { KeyState } from './agent-service';
import type { Operation } from './faults';

/** One request to the agent service. Requests for pull requests and to the control endpoints are not in the journal. */
export interface JournalEntry {
  /** From 1 in the order of arrival. */
  readonly number: number;
  /** When its headers had been read: ISO 8601 in UTC. */
  readonly time: string;
  /** When its exchange had ended, in whatever way, as `time`; null while it is pending. */
  readonly endedAt: string | null;
  readonly method: string;
  /** As it was sent, with the query. */
  readonly path: string;
  /** Null for a path that is none of the contract's, as are project and job. */
  readonly operation: Operation | null;
  readonly projectId: string | null;
  readonly jobId: string | null;
  readonly key: KeyState;
  /** Of a message whose body was read and well-formed. */
  readonly prompt: { readonly text: string; readonly length: number } | null;
  /** Whether a message was taken: a turn of the job was started or queued by it. */
  readonly processed: boolean;
  /** The number of that turn, increasing per job; null unless processed. */
  readonly turn: number | null;
  /** The status code that was answered; null while there is none. */
  readonly status: number | null;
  /** How the exchange ended, as far as the sandbox can see. */
  readonly ending: 'pending' | 'answered' | 'closed' | 'reset' | 'caller-gone' | 'sandbox-closed';
  /** The names of the faults that acted on it. */
  readonly faults: readonly string[];
}

/** Every field that is given must match; `fault` is one of those that acted. */
export type JournalFilter = Partial<Omit<JournalEntry, 'faults'>> & { readonly fault?: string };

/** Entries that are kept: some hours of a busy soak, and a bound on the memory of a sandbox that is left running. */
const MAX_ENTRIES = 200_000;

/** Every request in the order of arrival: the oracle that knows what was really processed. */
export class Journal {
  private readonly storedEntries = new Set<JournalEntry>();
  private readonly changes = new EventEmitter().setMaxListeners(0);
  private last = 0;

  /** @returns the entry, which goes on to change */
  open(
    start: Pick<JournalEntry, 'time' | 'method' | 'path' | 'key' | 'operation' | 'projectId' | 'jobId'>,
  ): JournalEntry {
    this.last += 1;
    const nothingYet = {
      prompt: null,
      processed: false,
      turn: null,
      status: null,
      endedAt: null,
      faults: [],
    } as const;
    const entry: JournalEntry = { number: this.last, ...start, ...nothingYet, ending: 'pending' };
    this.storedEntries.add(entry);
    const [oldest] = this.storedEntries;
    if (this.storedEntries.size > MAX_ENTRIES && oldest !== undefined) this.storedEntries.delete(oldest);
    return entry;
  }

  update(entry: JournalEntry, change: Partial<JournalEntry>): void {
    Object.assign(entry, change);
    this.changes.emit('change');
  }

  entries(filter: JournalFilter = {}): JournalEntry[] {
    return [...this.storedEntries].filter((entry) => matches(entry, filter)).map((entry) => ({ ...entry }));
  }

  /**
   * Waits until so many entries match.
   *
   * @param options `atLeast`, by default 1, and `timeoutMs`, by default 110 s
   * @throws Error when they don't in time; the message says how many there are
   */
  async waitFor(
    filter: JournalFilter,
    { atLeast = 1, timeoutMs = 110_000 }: { readonly atLeast?: number; readonly timeoutMs?: number } = {},
  ): Promise<JournalEntry[]> {
    const signal = AbortSignal.timeout(timeoutMs);
    for (;;) {
      const found = this.entries(filter);
      if (found.length >= atLeast) return found;
      await once(this.changes, 'change', { signal }).catch((error: unknown) => {
        const wanted = `${atLeast} request(s) that match ${JSON.stringify(filter)}`;
        throw new Error(`waited ${timeoutMs} ms for ${wanted}; the journal has ${found.length}`, {
          cause: error,
        });
      });
    }
  }
}

function matches(entry: JournalEntry, { fault, ...fields }: JournalFilter): boolean {
  const names = Object.keys(fields) as (keyof typeof fields)[];
  const same = names.every((name) => fields[name] === entry[name]);
  return same && (fault === undefined || entry.faults.includes(fault));
}
