import { EventEmitter, once } from 'node:events';
import type { KeyState } from './agent-service';
import type { Operation } from './faults';

/** A request to the agent service. Requests for pull requests and to the control endpoints are not in the journal. */
export interface JournalEntry {
  /** The number of the request, from 1, in the order of arrival. */
  readonly number: number;
  /** The time when the headers had been read, as ISO 8601 in UTC. */
  readonly time: string;
  /** The time when the request ended in any way, in the format of `time`. Null while the request is pending. */
  readonly endedAt: string | null;
  readonly method: string;
  /** The path as it was sent, with the query. */
  readonly path: string;
  /** The operation. If the path is not part of the contract, operation, project and job are null. */
  readonly operation: Operation | null;
  readonly projectId: string | null;
  readonly jobId: string | null;
  readonly key: KeyState;
  /** The header `traceparent` (W3C Trace Context), which connects the request to a trace. Null if the header was not sent. */
  readonly traceparent: string | null;
  /** The prompt of a message whose body was read and is valid. Otherwise null. */
  readonly prompt: { readonly text: string; readonly length: number } | null;
  /** Whether the message was accepted, and started or queued a turn of the job. */
  readonly processed: boolean;
  /** The number of this turn, which counts per job. Null unless the message was processed. */
  readonly turn: number | null;
  /** The status code of the response. Null while no status was sent. */
  readonly status: number | null;
  /** How the request ended, as far as the sandbox can observe. */
  readonly ending: 'pending' | 'answered' | 'closed' | 'reset' | 'caller-gone' | 'sandbox-closed';
  /** The names of the faults that acted on the request. */
  readonly faults: readonly string[];
}

/** Selects the entries whose fields have these values. `fault` is the name of one of the faults that acted. */
export type JournalFilter = Partial<Omit<JournalEntry, 'faults'>> & { readonly fault?: string };

/** The maximum number of stored entries: some hours of a busy soak test. The maximum limits the memory of a sandbox. */
const MAX_ENTRIES = 200_000;

/**
 * Records the latest requests to the agent service in the order of arrival, at most {@link MAX_ENTRIES}. Tests use the journal to find
 * out which messages were processed.
 */
export class Journal {
  private readonly storedEntries = new Set<JournalEntry>();
  private readonly changes = new EventEmitter().setMaxListeners(0);
  private last = 0;

  /** Adds an entry for a request. @returns the entry, which changes until the request has ended */
  open(
    start: Pick<
      JournalEntry,
      'time' | 'method' | 'path' | 'key' | 'traceparent' | 'operation' | 'projectId' | 'jobId'
    >,
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
   * Waits until the journal has enough entries that match.
   *
   * @param options `atLeast` is the number of entries (default: 1), and `timeoutMs` is the timeout (default: 110 s)
   * @throws Error after the timeout, with the number of matching entries
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
