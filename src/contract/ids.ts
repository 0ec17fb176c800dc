import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { MAX_WORKFLOW_ID_BYTES, utf8ByteLength } from './text';

/**
 * `follow-up:{projectId}:{jobId}:{requestId}`, each part percent-encoded. Clients in every language derive the same
 * (docs/workflow-id-vectors.json), so that a second start attaches instead of sending twice.
 *
 * @throws URIError for a lone surrogate
 */
export function followUpWorkflowId(projectId: string, jobId: string, requestId: string): string {
  return ['follow-up', ...[projectId, jobId, requestId].map(percentEncode)].join(':');
}

/** The part of a follow-up's workflow id that names the job. */
export function jobKeyFromWorkflowId(workflowId: string): string {
  return workflowId.slice(0, workflowId.lastIndexOf(':'));
}

/** `follow-up-job-lock:{projectId}:{jobId}`, percent-encoded. An ID that would be too long has a digest instead. */
export function jobLockWorkflowId(projectId: string, jobId: string): string {
  const names = [projectId, jobId].map(percentEncode).join(':');
  const workflowId = `follow-up-job-lock:${names}`;
  return utf8ByteLength(workflowId) <= MAX_WORKFLOW_ID_BYTES
    ? workflowId
    : `follow-up-job-lock:${sha256Hex(names)}`;
}

const BATCH = 'follow-up-batch:';

/** `follow-up-batch:{batchId}`, as it is, because a schedule can encode nothing. */
export function batchWorkflowId(batchId: string): string {
  return BATCH + batchId;
}

/** A batch may be named by its id or by its workflow id. */
export function toBatchId(batch: string): string {
  return batch.startsWith(BATCH) ? batch.slice(BATCH.length) : batch;
}

/** Enough that another batch of the same id has other chunks. */
const DIGEST_CHARACTERS = 12;

/** @param chunk its number, from 0 */
export function chunkWorkflowId(batchId: string, digest: string, chunk: number): string {
  return `follow-up-batch-items:${batchId}:${digest.slice(0, DIGEST_CHARACTERS)}:${chunk}`;
}

/** All but RFC 3986's unreserved characters; `encodeURIComponent` leaves `!'()*`. */
export function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => '%' + character.charCodeAt(0).toString(16).toUpperCase(),
  );
}

/** Server 1.32.0 refuses a longer one, and with 1.31.2 it stalls its task queue (measured). */
const MAX_FAIRNESS_KEY_BYTES = 64;

/** By it each project gets its share of a queue, and its own limit. */
export function fairnessKey(projectId: string): string {
  const isShort = utf8ByteLength(projectId) <= MAX_FAIRNESS_KEY_BYTES;
  return isShort ? projectId : `hash-${sha256Hex(projectId).slice(0, 32)}`;
}

/** SHA-256 in hexadecimal digits. A workflow has no `crypto`. */
export function sha256Hex(text: string): string {
  return bytesToHex(sha256(new TextEncoder().encode(text)));
}
