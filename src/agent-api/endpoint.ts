import type { JobAddress } from '../contract/activities';
import { percentEncode } from '../contract/workflow-id';

/** The agent service as one base URL names it: the origin to connect to, and the paths of its two operations. */
export class Endpoint {
  /** Scheme, host and port. */
  readonly origin: string;
  /** The host and port as people write them, for messages. */
  readonly host: string;
  private readonly prefix: string;

  /** @param baseUrl an http or https URL; a path prefix and trailing slashes are fine */
  constructor(baseUrl: string) {
    const url = new URL(baseUrl);
    this.origin = url.origin;
    this.host = url.host;
    this.prefix = url.pathname.replace(/\/+$/, '');
  }

  /** The path of the get-job operation. */
  jobPath({ projectId, jobId }: JobAddress): string {
    return `${this.prefix}/v2/agent/${percentEncode(projectId)}/job/${percentEncode(jobId)}`;
  }

  /** The path of the message operation. */
  messagePath(address: JobAddress): string {
    return `${this.jobPath(address)}/message`;
  }
}

/**
 * Why no path can name this job, or undefined. `.` and `..` are folded by servers even when they are encoded, so the
 * message might reach another resource. The request checker refuses such ids before; this is the last gate.
 */
export function addressProblem({ projectId, jobId }: JobAddress): string | undefined {
  for (const [name, id] of Object.entries({ projectId, jobId })) {
    if (id === '' || id === '.' || id === '..' || !id.isWellFormed()) {
      return `${name} ${JSON.stringify(id)} can't be a segment of a URL's path`;
    }
  }
  return undefined;
}
