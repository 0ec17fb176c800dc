import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { mustRun } from '../../harness/program';
import { ROOT } from '../../harness/worker-process';

const MODULE = 'github.com/docker/compose/v2';
const VERSION = 'v2.40.3';

/** Builds Docker Compose from its Go module into .cache, unless the program exists, and returns its path. */
export async function buildDockerCompose(): Promise<string> {
  const program = path.join(ROOT, `.cache/docker-compose-${VERSION}`);
  if (existsSync(program)) return program;
  const cwd = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-compose-'));
  try {
    await mustRun('go', ['mod', 'init', 'docker-compose'], { cwd });
    await mustRun('go', ['get', `${MODULE}/cmd@${VERSION}`], { cwd });
    const version = `-X ${MODULE}/internal.Version=${VERSION}`;
    await mustRun('go', ['build', '-o', `${program}.partial`, '-ldflags', version, `${MODULE}/cmd`], { cwd });
    await rename(`${program}.partial`, program);
    return program;
  } finally {
    await rm(cwd, { recursive: true });
  }
}
