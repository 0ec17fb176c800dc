import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { temporal } from '../harness/temporal';

/** The SDK's workflow side with what it needs, and SHA-256. */
const PACKAGES = ['@temporalio/workflow', '@temporalio/common', 'nexus-rpc', 'ms', 'long', '@noble/hashes'];

// A package such as zod costs 0.58 MB in every cached workflow, and one such as undici can't run there at all.
it('the workflow bundle holds the workflows, the contract, the SDK and SHA-256, and no package besides', () => {
  const code = readFileSync(temporal().bundlePath, 'utf8');
  expect(code).toContain('workflows/follow-up/follow-up.ts');
  // Webpack's inline source map lists the modules; it names a compiled file by its source.
  const [, map = ''] =
    /.*\/\/# sourceMappingURL=data:application\/json;charset=utf-8;base64,(.*)$/m.exec(code) ?? [];
  const { sources } = JSON.parse(Buffer.from(map, 'base64').toString()) as { sources: string[] };
  const misplaced = sources.filter((module) => {
    const name = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(module)?.[1];
    if (name !== undefined) return !PACKAGES.includes(name);
    return !module.startsWith('webpack/') && !/\/(src|dist)\/(core|workflows)\//.test(module);
  });
  expect(misplaced).toEqual([]);
});
