import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { MAX_WORKFLOW_ID_BYTES, utf8ByteLength } from './text';

/**
 * Returns the workflow ID `follow-up:{projectId}:{jobId}:{requestId}` with each part percent-encoded. A part that is a UUID is in
 * lower case, because two spellings of one UUID are one ID. Clients in every language must derive the same workflow ID
 * (docs/workflow-id-vectors.json), so that a second start attaches to the follow-up and sends nothing.
 *
 * @throws URIError for a lone surrogate
 */
export function followUpWorkflowId(projectId: string, jobId: string, requestId: string): string {
  return ['follow-up', ...[projectId, jobId, requestId].map(canonicalId).map(percentEncode)].join(':');
}

/** Returns a key that identifies the job of a follow-up. */
export function jobKeyFromWorkflowId(workflowId: string): string {
  return workflowId.split(':').slice(0, 3).join(':');
}

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Returns a UUID in lower case, and any other ID unchanged. RFC 9562 defines UUIDs without regard to letter case. */
export function canonicalId(id: string): string {
  return UUID.test(id) ? id.toLowerCase() : id;
}

/** Returns whether two IDs of the agent service are the same ID. Only UUIDs are compared without regard to letter case. */
export function isSameId(one: string, other: string): boolean {
  return canonicalId(one) === canonicalId(other);
}

/**
 * Returns the workflow ID `follow-up-job-lock:{projectId}:{jobId}` with both parts percent-encoded. If the ID would be too long, a
 * digest replaces the two parts. UUIDs are in lower case, because two spellings of one ID are one job.
 */
export function jobLockWorkflowId(projectId: string, jobId: string): string {
  const names = [projectId, jobId].map(canonicalId).map(percentEncode).join(':');
  const workflowId = `follow-up-job-lock:${names}`;
  return utf8ByteLength(workflowId) <= MAX_WORKFLOW_ID_BYTES
    ? workflowId
    : `follow-up-job-lock:${sha256Hex(names)}`;
}

const BATCH = 'follow-up-batch:';

/** Returns `follow-up-batch:{batchId}`. The batch ID is not encoded, because a schedule can't encode an ID. */
export function batchWorkflowId(batchId: string): string {
  return BATCH + batchId;
}

/** Returns the batch ID. @param batch the ID of the batch or the ID of its workflow */
export function toBatchId(batch: string): string {
  return batch.startsWith(BATCH) ? batch.slice(BATCH.length) : batch;
}

/** The number of digest characters in the ID of a chunk. The digest separates the chunks of batches with the same batch ID. */
const DIGEST_CHARACTERS = 12;

/** @param chunk the number of the chunk, from 0 */
export function chunkWorkflowId(batchId: string, digest: string, chunk: number): string {
  return `follow-up-batch-items:${batchId}:${digest.slice(0, DIGEST_CHARACTERS)}:${chunk}`;
}

/** Encodes every byte except RFC 3986's unreserved characters. `encodeURIComponent` alone does not encode `!'()*`. */
export function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => '%' + character.charCodeAt(0).toString(16).toUpperCase(),
  );
}

/** Temporal server 1.32.0 rejects a longer key, and with Temporal server 1.31.2 a longer key stalls the task queue. */
const MAX_FAIRNESS_KEY_BYTES = 64;

/**
 * Returns the fairness key with which each project has its share of a task queue and a separate rate limit. A UUID is in lower case,
 * and a long ID is hashed.
 */
export function fairnessKey(projectId: string): string {
  if (UUID.test(projectId)) return canonicalId(projectId);
  const isShort = utf8ByteLength(projectId) <= MAX_FAIRNESS_KEY_BYTES;
  return isShort ? projectId : `hash-${sha256Hex(projectId).slice(0, 32)}`;
}

/** Returns SHA-256 in hexadecimal digits. The function uses a library, because workflow code has no `crypto`. */
export function sha256Hex(text: string): string {
  return bytesToHex(sha256(new TextEncoder().encode(text)));
}
