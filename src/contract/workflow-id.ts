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
 * `text` with every UTF-8 byte but RFC 3986's unreserved characters (letters, digits, `-`, `.`, `_`, `~`) as `%XX` in
 * upper case. `encodeURIComponent` leaves `!'()*` as they are, hence the second step.
 */
export function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => '%' + character.charCodeAt(0).toString(16).toUpperCase(),
  );
}
