import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from '@jest/globals';
import { Program } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';

const ROOT = path.resolve(__dirname, '../..');

/** Types as in the SDK's package of protobuf messages, in which every field may be null or undefined. */
const PROTO_TYPES = `
interface IActivity { attempt?: number | null; activityId?: string | null }
export interface IInfo { firstRunId?: string | null; closeTime?: { seconds: number } | null; pending?: IActivity[] | null }
`;

const REJECTED = `
  info.firstRunId ?? 'fallback',
  info.pending?.[0]?.attempt ?? 1,
  (({ attempt }: Activity) => attempt ?? 1)({}),
  (({ attempt = 1 }: Activity) => attempt)({}),
`;
/** A message, a list, a field of another type, and a replacement that is the default of protobuf. */
const ACCEPTED = `
  info.closeTime ?? null,
  info.pending ?? [],
  own.attempt ?? 1,
  info.firstRunId ?? '',
  (({ activityId = '' }: Activity) => activityId)({}),
`;

const SOURCE = `import type { IInfo } from '@temporalio/proto';
type Activity = NonNullable<IInfo['pending']>[number];
declare const info: IInfo;
declare const own: { attempt?: number };
export const values = [${REJECTED}${ACCEPTED}];
`;

const CONFIG = `
import tseslint from '${pathToFileURL(require.resolve('typescript-eslint')).href}';
import { noProtoDefaults } from '${pathToFileURL(path.join(ROOT, 'tools/eslint-proto-defaults.mjs')).href}';
export default tseslint.config({
  files: ['*.ts'],
  languageOptions: {
    parser: tseslint.parser,
    parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
  },
  plugins: { project: { rules: { 'no-proto-defaults': noProtoDefaults } } },
  rules: { 'project/no-proto-defaults': 'error' },
});
`;

const folder = temporaryFolder();

it('the linter rejects a replacement for a missing string or number of a protobuf response, which is never missing', async () => {
  mkdirSync(path.join(folder, 'node_modules/@temporalio/proto'), { recursive: true });
  const files = {
    'node_modules/@temporalio/proto/index.d.ts': PROTO_TYPES,
    'eslint.config.mjs': CONFIG,
    'tsconfig.json': JSON.stringify({ compilerOptions: { strict: true, types: [] }, files: ['source.ts'] }),
    'source.ts': SOURCE,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  const eslint = path.join(ROOT, 'node_modules/eslint/bin/eslint.js');
  const args = [eslint, '--format', 'json', 'source.ts'];
  const { stdout, stderr } = await new Program(process.execPath, args, { cwd: folder }).waitForEnd();
  expect(stderr).toBe('');
  const [{ messages }] = JSON.parse(stdout) as [{ messages: { line: number }[] }];
  const rejected = messages.map(({ line }) => SOURCE.split('\n')[line - 1]);
  expect(rejected).toEqual(REJECTED.split('\n').filter((line) => line.trim() !== ''));
});
