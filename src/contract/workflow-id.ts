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
 * The workflow id of a batch: `follow-up-batch:{batchId}`, percent-encoded. {@link batchIdProblem} tells which ids are none.
 *
 * @throws URIError when the batch id holds a lone surrogate
 */
export function batchWorkflowId(batchId: string): string {
  return `follow-up-batch:${percentEncode(batchId)}`;
}

/**
 * The workflow id of one page of a batch: `follow-up-batch:{batchId}:{run}:page-{page}`.
 *
 * @param run what tells this run of the batch from others of the same id: {@link RUN_CHARACTERS} unreserved characters
 * @param page the page's number, from 1
 */
export function pageWorkflowId(batchId: string, run: string, page: number): string {
  return `${batchWorkflowId(batchId)}:${run}:page-${page}`;
}

/** Characters of `run` in the id of a page. */
export const RUN_CHARACTERS = 8;

/** What tells a run from others in the ids of pages: the end of its id, since ids of Temporal begin with the time. */
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
