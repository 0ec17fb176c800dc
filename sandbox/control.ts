import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { type ControlParts, ENDPOINTS } from './control-endpoints';
import { check, ControlError } from './control-schema';
import { FaultSettingError } from './fault-setting';
import { JobError, type JobKey } from './jobs';
import { readBody } from './message-body';
import { type Answer, errorAnswer } from './reaction';

/** Bytes of a control request's body: a job or a fault is a few hundred. */
const MAX_BODY_BYTES = 64 * 1_024;

/**
 * The control endpoints below `/sandbox`, for tests in other processes and for people with curl. They need no key and
 * are answered on the loopback interface only; a page in a browser (it sends `Origin`) is refused.
 */
export async function control(
  req: IncomingMessage,
  segments: readonly string[],
  query: URLSearchParams,
  parts: ControlParts,
): Promise<Answer> {
  if (!isLoopback(req.socket.remoteAddress) || req.headers.origin !== undefined) {
    return errorAnswer(403, 'the control endpoints answer programs on this machine only');
  }
  const here = ENDPOINTS.filter(({ path }) => match(path, segments) !== undefined);
  const endpoint = here.find(({ method }) => method === req.method);
  if (endpoint === undefined) {
    const methods = here.map(({ method }) => method).join(', ');
    return here.length === 0
      ? errorAnswer(404, 'no such control endpoint; GET /sandbox lists them')
      : errorAnswer(405, `this control endpoint takes ${methods}`, { allow: methods });
  }
  const target = match(endpoint.path, segments) ?? { projectId: '', jobId: '' };
  const body = async <T>(schema: z.ZodType<T>): Promise<T> =>
    check(schema, parseJson(await readBody(req, MAX_BODY_BYTES)));
  try {
    return await endpoint.handle({ ...parts, target, query, body });
  } catch (error) {
    if (error instanceof JobError) return errorAnswer(error.status, error.message);
    if (error instanceof FaultSettingError || error instanceof ControlError)
      return errorAnswer(400, error.message);
    throw error;
  }
}

/** The path's variables; undefined where the segments are of another path. */
function match(pattern: string, segments: readonly string[]): JobKey | undefined {
  const parts = pattern.split('/').slice(1);
  if (parts.length !== segments.length) return undefined;
  const variables = { projectId: '', jobId: '' };
  for (const [index, part] of parts.entries()) {
    const segment = segments[index] ?? '';
    if (part === ':projectId' || part === ':jobId') {
      variables[part === ':jobId' ? 'jobId' : 'projectId'] = segment;
    } else if (part !== segment) return undefined;
  }
  return variables;
}

/** No body is an empty object: an endpoint whose fields all have defaults needs none. */
function parseJson(body: Buffer | null): unknown {
  if (body === null) throw new ControlError(`the body is larger than ${MAX_BODY_BYTES} bytes`);
  try {
    return body.length === 0 ? {} : JSON.parse(body.toString('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) throw new ControlError(`the body is not JSON: ${error.message}`);
    throw error;
  }
}

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && /^(127\.|::1$|::ffff:127\.)/.test(address);
}
