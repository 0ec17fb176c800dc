/**
 * The workflow id of a follow-up: `follow-up:{projectId}:{jobId}:{requestId}`, each part percent-encoded.
 *
 * Every client in every language derives the same id, because the id is what makes a second start attach to the
 * first instead of sending twice (test vectors: docs/workflow-id-vectors.json).
 *
 * @throws URIError when a part holds a lone surrogate; the request checker refuses those before.
 */
export function followUpWorkflowId(projectId: string, jobId: string, requestId: string): string {
  return ['follow-up', ...[projectId, jobId, requestId].map(percentEncode)].join(':');
}

/**
 * The workflow id of a batch: `follow-up-batch:{batchId}`, percent-encoded. {@link batchIdProblem} says which ids are invalid.
 *
 * @throws URIError when the batch id holds a lone surrogate
 */
export function batchWorkflowId(batchId: string): string {
  return `follow-up-batch:${percentEncode(batchId)}`;
}

/** The batch id in a batch's workflow id; anything else as it is. A batch may be named by either. */
export function batchIdOf(batch: string): string {
  const [, encoded] = /^follow-up-batch:(.*)$/s.exec(batch) ?? [];
  if (encoded === undefined) return batch;
  try {
    return decodeURIComponent(encoded);
  } catch (error) {
    // A schedule's batch has the schedule's id as it is.
    if (!(error instanceof URIError)) throw error;
    return encoded;
  }
}

/**
 * The workflow id of one page of a batch: `follow-up-batch:{batchId}:{run}:page-{page}`.
 *
 * @param run distinguishes this run of the batch from others of the same id: {@link RUN_CHARACTERS} unreserved characters
 * @param page the page's number, from 1
 */
export function pageWorkflowId(batchId: string, run: string, page: number): string {
  return `${batchWorkflowId(batchId)}:${run}:page-${page}`;
}

/** Characters of `run` in the id of a page. */
export const RUN_CHARACTERS = 8;

/** Distinguishes runs in the ids of pages: the end of the run id, since ids of Temporal begin with the time. */
export function runOf(firstRunId: string): string {
  return firstRunId.slice(-RUN_CHARACTERS);
}

/**
 * `text` with every UTF-8 byte but RFC 3986's unreserved characters (letters, digits, `-`, `.`, `_`, `~`) as `%XX` in
 * upper case. `encodeURIComponent` leaves `!'()*` as they are, hence the second step.
 */
export function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => '%' + character.charCodeAt(0).toString(16).toUpperCase(),
  );
}

/** Bytes of a fairness key: a longer one stalls its task queue (measured, server 1.31.2). */
const MAX_FAIRNESS_KEY_BYTES = 64;

/**
 * The fairness key of a project: the tasks of each project get their share of a queue, and limits per key are limits per
 * project. A project id that is too long is replaced by a hash.
 */
export function fairnessKey(projectId: string): string {
  const bytes = new TextEncoder().encode(projectId);
  return bytes.length <= MAX_FAIRNESS_KEY_BYTES ? projectId : `hash-${fnv1a64(bytes)}`;
}

/**
 * FNV-1a of 64 bits (draft-eastlake-fnv), in hexadecimal digits. Nothing is secret here, and a workflow has no
 * cryptographic hash. Two projects with the same hash would share one limit.
 */
function fnv1a64(bytes: Uint8Array): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, '0');
}
