/** One turn's work on a pull request. */
export interface Commit {
  readonly jobId: string;
  /** What the agent was asked to do; null for the work of a job's first turn, which had no message. */
  readonly prompt: string | null;
  /** Epoch milliseconds. */
  readonly at: number;
}

export interface PullRequest {
  readonly number: number;
  readonly repository: string;
  readonly branch: string;
  readonly commits: readonly Commit[];
}

/** The pull requests that the sandbox's agent has opened: a code-hosting service in miniature. */
export class PullRequests {
  private readonly opened: (PullRequest & { readonly commits: Commit[] })[] = [];

  /** `baseUrl` is asked for late, because the port is known only once the server listens. */
  constructor(private readonly baseUrl: () => string) {}

  /** Opens a pull request and returns its link. */
  open(repository: string, branch: string, commit: Commit): string {
    const number = this.opened.length + 1;
    this.opened.push({ number, repository, branch, commits: [commit] });
    return `${this.baseUrl()}/pull/${number}`;
  }

  /** Adds a commit to the pull request behind a link; a link to somewhere else stays as it is. */
  push(link: string, commit: Commit): void {
    const ours = this.opened.find(({ number }) => link === `${this.baseUrl()}/pull/${number}`);
    ours?.commits.push(commit);
  }

  find(number: number): PullRequest | undefined {
    return this.opened[number - 1];
  }
}
