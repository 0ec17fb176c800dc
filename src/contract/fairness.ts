/** Bytes of a fairness key: a longer one stalls its task queue (measured, server 1.31.2). */
const MAX_FAIRNESS_KEY_BYTES = 64;

/**
 * The fairness key of a project: the tasks of each project get their share of a queue, and limits per key are limits per
 * project. A project id that does not fit is stood for by a hash.
 */
export function fairnessKey(projectId: string): string {
  const bytes = new TextEncoder().encode(projectId);
  return bytes.length <= MAX_FAIRNESS_KEY_BYTES ? projectId : `hash-${fnv1a64(bytes)}`;
}

/**
 * FNV-1a of 64 bits (draft-eastlake-fnv), in hexadecimal digits. Nothing is secret here, and a workflow has no
 * cryptographic hash; two projects that met in it would share one limit.
 */
function fnv1a64(bytes: Uint8Array): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, '0');
}
