import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Operation } from './fault-row';

/** How the exchange ended, as far as the sandbox can see. */
export type Ending = 'pending' | 'answered' | 'closed' | 'reset' | 'caller-gone' | 'sandbox-closed';

export interface JournalPrompt {
  readonly sha256: string;
  /** UTF-16 code units, as `String.length`. */
  readonly length: number;
  readonly text: string;
}

/** One request to the agent service. Requests for pages and to the control endpoints are not in the journal. */
export interface JournalEntry {
  /** From 1 in the order of arrival. */
  readonly number: number;
  /** When its headers had been read: ISO 8601 in UTC. */
  readonly time: string;
  /** From 1 in the order in which connections were made: requests with the same number shared one. */
  readonly connection: number;
  readonly method: string;
  /** As it was sent, with the query. */
  readonly path: string;
  /** Null for a path that is none of the contract's. */
  readonly operation: Operation | null;
  readonly projectId: string | null;
  readonly jobId: string | null;
  /** Names in lower case; the value of `authorization` is `[hidden]`. */
  readonly headers: Readonly<Record<string, string>>;
  /** What kind of key it carried. */
  readonly key: 'write' | 'read-only' | 'expired' | 'unknown' | 'none';
  /** The prompt of a message whose body was read and well-formed. */
  readonly prompt: JournalPrompt | null;
  /** Whether a message was taken: a turn of the job was started or queued by it. */
  readonly processed: boolean;
  /** The number of that turn, increasing per job; null unless processed. */
  readonly turn: number | null;
  /** The status code that was answered; null while there is none. */
  readonly status: number | null;
  readonly ending: Ending;
  /** From arrival to the end, in milliseconds; null while pending. */
  readonly durationMs: number | null;
  /** The names of the faults that acted on it. */
  readonly faults: readonly string[];
}

/** Every field that is given must match. */
export interface JournalFilter {
  readonly projectId?: string;
  readonly jobId?: string;
  readonly method?: string;
  readonly operation?: Operation;
  readonly processed?: boolean;
  readonly ending?: Ending;
  /** One of the faults that acted. */
  readonly fault?: string;
}

/** One entry while its exchange goes on. */
export interface JournalRecord {
  readonly entry: () => JournalEntry;
  readonly update: (change: Partial<JournalEntry>) => void;
  readonly addFault: (name: string) => void;
}

export interface WaitOptions {
  /** @default 1 */
  readonly atLeast?: number;
  /** Milliseconds. @default 10 seconds */
  readonly timeoutMs?: number;
}

export const WAIT_DEFAULTS = { atLeast: 1, timeoutMs: 10_000 } as const;

/** Entries that are kept: some hours of a busy soak, and a bound on the memory of a sandbox that is left running. */
const MAX_ENTRIES = 200_000;

/** Every request in the order of arrival: the oracle that knows what was really processed. */
export class Journal {
  private readonly kept = new Map<number, JournalEntry>();
  private readonly waiting = new Set<() => void>();
  private last = 0;

  open(
    start: Pick<JournalEntry, 'time' | 'connection' | 'method' | 'path' | 'headers' | 'key'>,
  ): JournalRecord {
    this.last += 1;
    const number = this.last;
    let entry: JournalEntry = {
      number,
      operation: null,
      projectId: null,
      jobId: null,
      prompt: null,
      processed: false,
      turn: null,
      status: null,
      ending: 'pending',
      durationMs: null,
      faults: [],
      ...start,
    };
    const update = (change: Partial<JournalEntry>): void => {
      entry = { ...entry, ...change };
      if (this.kept.has(number)) this.kept.set(number, entry);
      for (const look of this.waiting) look();
    };
    this.kept.set(number, entry);
    if (this.kept.size > MAX_ENTRIES) this.kept.delete(number - MAX_ENTRIES);
    return {
      entry: () => entry,
      update,
      addFault: (name) => {
        update({ faults: [...entry.faults, name] });
      },
    };
  }

  entries(filter: JournalFilter = {}): JournalEntry[] {
    return [...this.kept.values()].filter((entry) => matches(entry, filter));
  }

  /**
   * Waits until so many entries match.
   *
   * @throws Error when they don't in time; the message says how many there are.
   */
  async waitFor(filter: JournalFilter, options: WaitOptions = {}): Promise<JournalEntry[]> {
    const { atLeast, timeoutMs } = { ...WAIT_DEFAULTS, ...options };
    const found = await this.wait(filter, atLeast, timeoutMs);
    if (found.length >= atLeast) return found;
    throw new Error(notEnough(filter, atLeast, timeoutMs, found.length));
  }

  /** Waits until so many entries match or the time is over, and returns what there is. */
  async wait(filter: JournalFilter, atLeast: number, timeoutMs: number): Promise<JournalEntry[]> {
    const timer = new AbortController();
    let found = this.entries(filter);
    if (found.length >= atLeast || timeoutMs === 0) return found;
    const look = (): void => {
      found = this.entries(filter);
      if (found.length >= atLeast) timer.abort();
    };
    this.waiting.add(look);
    await sleep(timeoutMs, undefined, { signal: timer.signal }).catch((error: unknown) => {
      if (!timer.signal.aborted) throw error;
    });
    this.waiting.delete(look);
    return found;
  }
}

export function notEnough(filter: JournalFilter, atLeast: number, timeoutMs: number, found: number): string {
  return `waited ${timeoutMs} ms for ${atLeast} request(s) that match ${JSON.stringify(filter)}; the journal has ${found}`;
}

export function journalPrompt(text: string): JournalPrompt {
  return { sha256: createHash('sha256').update(text).digest('hex'), length: text.length, text };
}

function matches(entry: JournalEntry, { fault, ...fields }: JournalFilter): boolean {
  const names = Object.keys(fields) as (keyof typeof fields)[];
  const same = names.every((name) => fields[name] === entry[name]);
  return same && (fault === undefined || entry.faults.includes(fault));
}
