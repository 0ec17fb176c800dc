import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { temporal } from '../harness/temporal';

describe('the workflow bundle', () => {
  it('holds the workflows, the contract and the SDK, and no package besides', () => {
    const code = readFileSync(temporal().bundlePath, 'utf8');
    expect(code).toContain('workflows/follow-up/follow-up.ts');
    expect(misplacedModules(code)).toEqual([]);
  });

  it('shows what has got in by mistake', async () => {
    // Inside the project, so that webpack finds the packages.
    const cache = path.resolve(__dirname, '../../.cache');
    mkdirSync(cache, { recursive: true });
    const folder = mkdtempSync(path.join(cache, 'bundle-'));
    try {
      const stray = path.join(folder, 'stray.js');
      writeFileSync(stray, `module.exports = require('zod');`);
      const workflowsPath = path.join(folder, 'index.js');
      writeFileSync(workflowsPath, `exports.followUp = async () => require(${JSON.stringify(stray)});`);
      const { code } = await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
      const misplaced = misplacedModules(code);
      expect(misplaced).toContain('zod');
      expect(misplaced).toContain(stray);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** What a workflow bundle may hold besides the project's own files: the SDK's workflow side and what that needs. */
const ALLOWED_PACKAGES = ['@temporalio/workflow', '@temporalio/common', 'nexus-rpc', 'ms', 'long'];

/** The folders of the project whose files are deterministic. The source map names a compiled file by its source. */
const OWN_FILE = new RegExp(`/(src|dist)/(core|workflows)/`);

/**
 * The modules in a bundle that must not be there: a package such as zod costs 0.58 MB in every cached workflow, and one
 * such as undici can't run there at all. Webpack's inline source map lists the modules.
 *
 * @returns package names and paths, sorted; empty when the bundle is lean
 */
function misplacedModules(code: string): string[] {
  const misplaced = new Set<string>();
  for (const module of bundledModules(code)) {
    const name = packageOf(module);
    if (name !== undefined) {
      if (!ALLOWED_PACKAGES.includes(name)) misplaced.add(name);
    } else if (!module.startsWith('webpack/') && !OWN_FILE.test(module)) {
      misplaced.add(module);
    }
  }
  return [...misplaced].sort();
}

/** The paths of everything that went into a bundle. */
function bundledModules(code: string): readonly string[] {
  const marker = '//# sourceMappingURL=data:application/json;charset=utf-8;base64,';
  const start = code.lastIndexOf(marker);
  if (start < 0) throw new Error('the workflow bundle has no source map, so its modules are not known');
  const map = JSON.parse(Buffer.from(code.slice(start + marker.length), 'base64').toString()) as {
    sources: string[];
  };
  return map.sources;
}

function packageOf(module: string): string | undefined {
  return /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(module)?.[1];
}
