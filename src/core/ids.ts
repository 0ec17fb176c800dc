import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { utf8Bytes } from './text';

/**
 * The workflow id of a follow-up: `follow-up:{projectId}:{jobId}:{requestId}`, each part percent-encoded. Clients in every
 * language derive the same (docs/workflow-id-vectors.json), so that a second start attaches instead of sending twice.
 *
 * @throws URIError when a part holds a lone surrogate; the request checker refuses those before.
 */
export function followUpWorkflowId(projectId: string, jobId: string, requestId: string): string {
  return ['follow-up', ...[projectId, jobId, requestId].map(percentEncode)].join(':');
}

/** The workflow id of a batch: `follow-up-batch:{batchId}`, percent-encoded. @throws URIError for a lone surrogate */
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

/** @param page the page's number, from 1 */
export function pageWorkflowId(batchId: string, run: string, page: number): string {
  return `${batchWorkflowId(batchId)}:${run}:page-${page}`;
}

export const RUN_CHARACTERS = 8;

/** What distinguishes a run of a batch from others of its id: the end of the run id, since it begins with the time. */
export function runOf(firstRunId: string): string {
  return firstRunId.slice(-RUN_CHARACTERS);
}

/** `text` with every UTF-8 byte but RFC 3986's unreserved characters as `%XX`; `encodeURIComponent` leaves `!'()*`. */
export function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => '%' + character.charCodeAt(0).toString(16).toUpperCase(),
  );
}

/** Bytes of a fairness key: server 1.32.0 refuses a longer one, and with 1.31.2 it stalls its task queue (measured). */
const MAX_FAIRNESS_KEY_BYTES = 64;

/** The tasks of each project get their share of a queue, and limits per key are limits per project. */
export function fairnessKey(projectId: string): string {
  const isShort = utf8Bytes(projectId) <= MAX_FAIRNESS_KEY_BYTES;
  return isShort ? projectId : `hash-${digestOf(projectId).slice(0, 32)}`;
}

/** The SHA-256 of a text's UTF-8 form, in hexadecimal digits. A workflow has neither Node's nor the web's `crypto`. */
export function digestOf(text: string): string {
  return bytesToHex(sha256(new TextEncoder().encode(text)));
}
