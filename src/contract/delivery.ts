/** What is known about the message's way to the service. */
export type Verdict = 'not-sent' | 'accepted' | 'rejected' | 'unknown';

/** Who says that the message arrived. */
export type ConfirmedBy = 'response' | 'read' | 'operator' | 'assumed';

export interface Delivery {
  readonly verdict: Verdict;
  /** Null unless the verdict is `accepted`. */
  readonly confirmedBy: ConfirmedBy | null;
  /** POSTs that were not provably kept from the service: an answered 429 counts, a refused connection does not. */
  readonly sends: number;
}

/**
 * Why a terminal status was believed.
 *
 * - `seen-active`: the job was terminal before the send, and was seen not terminal after it.
 * - `status-changed`: it went from one terminal status to another, `completed` or `failed`.
 * - `job-changed`: the status held for `confirm`, and the link or `archivedAt` differ from those before the send.
 * - `confirmed`: the status held for `confirm`, and nothing else tells the job from what it was before.
 */
export type Evidence = 'seen-active' | 'status-changed' | 'job-changed' | 'confirmed';
