import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { OutputTail } from './output-tail';
import { every15Seconds } from './sign-of-life';
import { PINNED_CLI } from './temporal-version';
import { spawnTethered } from './tether';

/** The Go module that pins the CLI and, by its go.sum, every package that goes into it. */
const GO_MODULE = path.resolve(__dirname, '../tools/temporal-cli');
const PACKAGE = 'github.com/temporalio/cli/cmd/temporal';

/** Eight times the longest build that was measured: what lasts longer waits for something that will not come. */
const BUILD_LIMIT_MS = 60 * 60_000;

export interface BuildOptions {
  /** The `go` executable. */
  readonly go: string;
  /** Where the executable will be. */
  readonly target: string;
  readonly env: NodeJS.ProcessEnv;
  readonly say: (line: string) => void;
}

/**
 * Builds the pinned Temporal CLI, Web UI included, from the Go module proxy. What is half built has another name, so a
 * build that is killed leaves nothing that anybody would run.
 *
 * @throws Error with the last lines of what `go` said
 */
export async function buildTemporalCli({ go, target, env, say }: BuildOptions): Promise<void> {
  const folder = path.dirname(target);
  await mkdir(folder, { recursive: true });
  await removeLeftovers(folder);
  const part = path.join(folder, `${path.basename(target)}.${process.pid}.part`);
  say(`building Temporal CLI ${PINNED_CLI} from the Go module proxy, once: 4 to 7 minutes on two cores`);
  // Flags here win over GOFLAGS. The linker writes the release that `--version` prints, as the CLI's own releases do.
  const version = `-X github.com/temporalio/cli/internal/temporalcli.Version=${PINNED_CLI}`;
  const flags = ['-mod=readonly', '-buildvcs=false', `-ldflags=-s -w ${version}`];
  const child = await spawnTethered(go, ['build', ...flags, '-o', part, PACKAGE], {
    cwd: GO_MODULE,
    // CGO_ENABLED=0 needs no C compiler; GOWORK=off keeps a go.work of a folder above from taking part.
    env: { ...env, CGO_ENABLED: '0', GOWORK: 'off' },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const words = new OutputTail(child.stdout, child.stderr);
  const quiet = every15Seconds((elapsed) => {
    say(`still building the Temporal CLI (${elapsed})`);
  });
  const limit = setTimeout(() => void child.stop(), BUILD_LIMIT_MS);
  try {
    const { code, signal } = await child.exited;
    if (code !== 0) {
      throw new Error(`\`go build\` ended with ${signal ?? `exit code ${code}`}:\n${words.lines(15)}`);
    }
    await rename(part, target);
  } finally {
    quiet();
    clearTimeout(limit);
    await rm(part, { force: true });
  }
}

/** What builds that were killed have left: some 100 MB each. The caller's lock keeps a living build out of here. */
async function removeLeftovers(folder: string): Promise<void> {
  const leftovers = (await readdir(folder)).filter((name) => name.endsWith('.part'));
  await Promise.all(leftovers.map((name) => rm(path.join(folder, name), { force: true })));
}
