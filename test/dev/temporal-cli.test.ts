import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  access,
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  downloadedCliPath,
  downloadTemporalCli,
  PINNED_CLI,
  withCacheLock,
} from '../../dev/make-temporal-cli';
import { findTemporalCli, type TemporalCli } from '../../dev/temporal-cli';
import { temporal } from '../harness/temporal';

/** Nothing listens there, so that a download fails at once whatever network the machine has. */
const NO_NETWORK = { HTTPS_PROXY: 'http://127.0.0.1:1' };

const PINNED = { cli: '1.8.2', server: '1.31.2' };
const PLATFORM = `${process.platform}-${process.arch}`;

/** A `go` that "builds" by writing its last argument but one, the target of `-o`, and counts its runs. */
const GO = [
  'echo run >> "$(dirname "$0")/runs"',
  'echo "$CGO_ENABLED $GOWORK $(basename "$PWD") $*" > "$(dirname "$0")/call"',
  'while [ "$1" != -o ]; do shift; done',
  `printf '#!/bin/sh\\necho "${versionLine('1.8.2', '1.31.2')}"\\n' > "$2"`,
  'chmod +x "$2"',
];

describe('finding the Temporal CLI', () => {
  let folder: string;
  let said: string[];

  beforeEach(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'temporal-cli-test-'));
    said = [];
    // What scripts call; `temporal` and `go` of this machine are kept out.
    await mkdir(at('bin'));
    for (const name of ['dirname', 'basename', 'chmod', 'sleep'])
      await symlink(await which(name), at('bin', name));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const at = (...parts: string[]): string => path.join(folder, ...parts);
  const builtPath = (): string => at('cache', `${PINNED_CLI}-${PLATFORM}`, 'temporal');

  function find(env: NodeJS.ProcessEnv = {}): Promise<TemporalCli> {
    return findTemporalCli({
      env: { PATH: at('bin'), ...NO_NETWORK, ...env },
      say: (line) => said.push(line),
      cacheFolder: at('cache'),
    });
  }

  it('takes TEMPORAL_CLI_PATH before one on PATH', async () => {
    const configured = await writeTemporal(at('configured', 'temporal'), '1.9.0', '1.32.0');
    await writeTemporal(at('bin', 'temporal'));
    expect(await find({ TEMPORAL_CLI_PATH: configured })).toEqual({
      path: configured,
      source: 'TEMPORAL_CLI_PATH',
      version: { cli: '1.9.0', server: '1.32.0' },
    });
  });

  it.each([
    ['missing', 'there is no such file', () => Promise.resolve()],
    [
      'no Temporal CLI',
      'it is no Temporal CLI: `--version` printed "hello"',
      (file: string) => writeProgram(file, 'echo hello'),
    ],
    ['failing', '`--version` fails', (file: string) => writeProgram(file, 'exit 3')],
    [
      'too old',
      'it is too old: CLI 1.7.2 with server 1.31.1',
      (file: string) => writeTemporal(file, '1.7.2', '1.31.1'),
    ],
  ])('never passes over a TEMPORAL_CLI_PATH that is %s', async (_, problem, prepare) => {
    const configured = at('configured', 'temporal');
    await prepare(configured);
    await writeTemporal(at('bin', 'temporal'));
    await expect(find({ TEMPORAL_CLI_PATH: configured })).rejects.toThrow(
      `TEMPORAL_CLI_PATH: ${configured} can't be used: ${problem}`,
    );
  });

  it('takes the one on PATH before one that it has built', async () => {
    const onPath = await writeTemporal(at('bin', 'temporal'));
    await writeTemporal(builtPath());
    expect(await find()).toEqual({ path: onPath, source: 'PATH', version: PINNED });
    expect(said).toEqual([]);
  });

  it('takes the one on PATH whose CLI calls itself 0.0.0-DEV, by its server', async () => {
    await writeTemporal(at('bin', 'temporal'), '0.0.0-DEV', '1.31.2');
    expect(await find()).toMatchObject({ source: 'PATH' });
  });

  it('says that the one on PATH is too old, and goes on', async () => {
    const onPath = await writeTemporal(at('bin', 'temporal'), '1.5.1', '1.29.1');
    await writeTemporal(builtPath());
    expect(await find()).toEqual({ path: builtPath(), source: 'built', version: PINNED });
    expect(said).toEqual([
      `${onPath} on PATH can't be used: it is too old: CLI 1.5.1 with server 1.29.1; ` +
        'needed is Temporal CLI 1.8.2 (server 1.31.2) or newer',
    ]);
  });

  it('takes one that the SDK has downloaded before, and asks no network', async () => {
    const downloaded = downloadedCliPath(at('cache', `sdk-${PLATFORM}`));
    await writeTemporal(downloaded);
    expect(await find()).toEqual({ path: downloaded, source: 'downloaded', version: PINNED });
    expect(said).toEqual([]);
  });

  it('builds one with Go when nothing else is there, and keeps it', async () => {
    await writeProgram(at('bin', 'go'), ...GO);
    const built = { path: builtPath(), source: 'built', version: PINNED };
    expect(await find()).toEqual(built);
    expect(await find()).toEqual(built);
    expect(await readFile(at('bin', 'runs'), 'utf8')).toBe('run\n');
    expect(await readFile(at('bin', 'call'), 'utf8')).toMatch(
      /^0 off temporal-cli build .*-o \S+\.part github\.com\/temporalio\/cli\/cmd\/temporal\n$/,
    );
    expect(said).toEqual([
      expect.stringMatching(/^downloading Temporal CLI/),
      expect.stringMatching(/^a download by the Temporal SDK can't be used: temporal\.download: /),
      expect.stringMatching(/^building Temporal CLI 1\.8\.2 .*4 to 7 minutes/),
    ]);
  });

  it('builds once when two ask at the same time', async () => {
    await writeProgram(at('bin', 'go'), 'sleep 1', ...GO);
    const [one, other] = await Promise.all([find(), find()]);
    expect(one).toEqual(other);
    expect(await readFile(at('bin', 'runs'), 'utf8')).toBe('run\n');
    expect(said).toContain('another process is getting the Temporal CLI; waiting for it');
  });

  it('never uses what a build that failed has left', async () => {
    await writeProgram(at('bin', 'go'), ...GO, 'echo "no space left on device" >&2', 'exit 1');
    await expect(find()).rejects.toThrow(/`go build` ended with exit code 1:\n +no space left on device/);
    expect(await readdir(path.dirname(builtPath()))).toEqual([]);
    expect(await readdir(at('cache'))).not.toContain('lock');
  });

  it('builds anew over a file that is damaged, and says so', async () => {
    await writeProgram(builtPath(), 'exit 1');
    await writeProgram(at('bin', 'go'), ...GO);
    expect(await find()).toMatchObject({ source: 'built', version: PINNED });
    expect(said[0]).toContain(`${builtPath()} can't be used: \`--version\` fails`);
  });

  it('names all that it tried and what to do when there is nothing', async () => {
    await writeTemporal(at('bin', 'temporal'), '1.5.1', '1.29.1');
    const { message } = await find().then(
      () => new Error('found one'),
      (error: unknown) => error as Error,
    );
    expect(message.split('\n')).toEqual([
      'There is no Temporal CLI, whose dev server is needed here. What was tried:',
      expect.stringMatching(/^ {2}- \S+\/temporal on PATH: it is too old/),
      expect.stringMatching(/^ {2}- a download by the Temporal SDK: temporal\.download: \S/),
      '  - a build from the Go module proxy: there is no Go toolchain (`go`) on PATH',
      'Do one of these and run the command again:',
      expect.stringMatching(/install Temporal CLI 1\.8\.2 \(server 1\.31\.2\) or newer/),
      expect.stringMatching(/TEMPORAL_CLI_PATH/),
      expect.stringMatching(/temporal\.download/),
      expect.stringMatching(/install Go/),
    ]);
  });

  it('gives up a download of which nothing comes', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    try {
      const found = findTemporalCli({
        env: { PATH: at('bin'), HTTPS_PROXY: `http://127.0.0.1:${port}` },
        say: (line) => said.push(line),
        cacheFolder: at('cache'),
        downloadAnswerMs: 500,
      });
      await expect(found).rejects.toThrow('temporal.download: nothing came for 0.5 s');
    } finally {
      silent.close();
      for (const socket of sockets) socket.destroy();
    }
  });

  it('knows under which name the SDK keeps its download', async () => {
    await copyFile(temporal().cli, downloadedCliPath(folder));
    // The SDK would have to download what it does not find, and there is no network.
    const env = { PATH: at('bin'), ...NO_NETWORK };
    const file = await downloadTemporalCli(folder, { env, say: (line) => said.push(line) });
    expect(file).toBe(downloadedCliPath(folder));
  });

  it('pins one release, in the Go module too', async () => {
    const goModule = await readFile(path.resolve(__dirname, '../../tools/temporal-cli/go.mod'), 'utf8');
    expect(goModule).toContain(`github.com/temporalio/cli v${PINNED_CLI}`);
    expect(goModule).toContain('go.temporal.io/server v1.31.2');
  });
});

describe('the lock of the cache', () => {
  let folder: string;
  let said: string[];

  beforeEach(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'cache-lock-test-'));
    said = [];
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const file = (): string => path.join(folder, 'lock');
  const locked = <T>(work: () => Promise<T>): Promise<T> =>
    withCacheLock(file(), (line) => said.push(line), work);

  it('lets one work at a time', async () => {
    let working = 0;
    const work = async (): Promise<number> => {
      working += 1;
      const together = working;
      await access(folder);
      working -= 1;
      return together;
    };
    expect(await Promise.all([locked(work), locked(work), locked(work)])).toEqual([1, 1, 1]);
    expect(said[0]).toBe('another process is getting the Temporal CLI; waiting for it');
  });

  it('is given back when the work fails', async () => {
    await expect(locked(() => Promise.reject(new Error('no space')))).rejects.toThrow('no space');
    await expect(access(file())).rejects.toThrow('ENOENT');
  });

  it('of a process that was killed is taken over at once', async () => {
    const { pid } = spawnSync(process.execPath, ['-e', '']);
    await writeFile(file(), `${pid} ${os.hostname()}`);
    expect(await locked(() => Promise.resolve('done'))).toBe('done');
    expect(said).toEqual([]);
  });

  it('of another machine is taken over when nobody has touched it for half a minute', async () => {
    await writeFile(file(), '1 another-machine');
    const longAgo = new Date(Date.now() - 31_000);
    await utimes(file(), longAgo, longAgo);
    expect(await locked(() => Promise.resolve('done'))).toBe('done');
  });
});

async function which(name: string): Promise<string> {
  for (const folder of ['/usr/bin', '/bin']) {
    if ((await readdir(folder)).includes(name)) return path.join(folder, name);
  }
  throw new Error(`no ${name} on this machine`);
}

/** Writes an executable shell script and returns its path. */
async function writeProgram(file: string, ...lines: string[]): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, ['#!/bin/sh', ...lines, ''].join('\n'));
  await chmod(file, 0o755);
  return file;
}

/** What `temporal --version` prints. */
function versionLine(cli: string, server: string): string {
  return `temporal version ${cli} (Server ${server}, UI 2.50.1)`;
}

/** A program that prints a version as the Temporal CLI does, and can do no more. */
async function writeTemporal(file: string, cli = '1.8.2', server = '1.31.2'): Promise<string> {
  return writeProgram(file, `echo '${versionLine(cli, server)}'`);
}
