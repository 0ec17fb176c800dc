import type { Operation } from './fault-row';
import type { JobKey } from './jobs';

/** What a path asks for. */
export type Route =
  | ({ readonly kind: 'agent'; readonly operation: Operation } & JobKey)
  | { readonly kind: 'pull'; readonly number: number }
  | { readonly kind: 'control'; readonly segments: readonly string[] }
  | { readonly kind: 'unknown'; readonly reason: string };

const BAD_ENCODING = 'the path is not percent-encoded UTF-8';

/**
 * Reads the raw path of a request. The segments are split before they are decoded, so that an id may hold an encoded
 * slash; `basePath` is the prefix of the agent service, `` or such as `/api`.
 */
export function readRoute(path: string, basePath: string): Route {
  if (path === '/sandbox' || path.startsWith('/sandbox/')) {
    const segments = path.split('/').slice(2).map(percentDecode);
    return segments.includes(undefined)
      ? { kind: 'unknown', reason: BAD_ENCODING }
      : { kind: 'control', segments: segments.filter((segment) => segment !== undefined) };
  }
  const below = path.startsWith(basePath + '/') ? path.slice(basePath.length) : '';
  const pull = /^\/pull\/(\d{1,9})$/.exec(below)?.[1];
  if (pull !== undefined) return { kind: 'pull', number: Number(pull) };
  const agent = /^\/v2\/agent\/([^/]+)\/job\/([^/]+)(\/message)?$/.exec(below);
  if (agent === null) return { kind: 'unknown', reason: 'no such path' };
  const projectId = percentDecode(agent[1] ?? '');
  const jobId = percentDecode(agent[2] ?? '');
  if (projectId === undefined || jobId === undefined) return { kind: 'unknown', reason: BAD_ENCODING };
  return { kind: 'agent', operation: agent[3] === undefined ? 'get' : 'message', projectId, jobId };
}

/** The text of a percent-encoded segment; undefined where it is not well-formed UTF-8. */
export function percentDecode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}
