/** What a workflow bundle may hold besides the project's own files: the SDK's workflow side and what that needs. */
const ALLOWED_PACKAGES = ['@temporalio/workflow', '@temporalio/common', 'nexus-rpc', 'ms', 'long'];

/** The folders of the project whose files are deterministic. A compiled file stands there by the path of its source. */
const OWN_FILE = /\/(src|dist)\/(workflows|contract|polling|batch)\//;

/**
 * The modules in a bundle that have no place in it: a package such as zod costs 0.58 MB in every cached workflow, one
 * such as undici can't run there at all. Webpack's inline source map tells what is inside.
 *
 * @returns package names and paths, sorted; empty when the bundle is lean
 */
export function misplacedModules(code: string): string[] {
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
export function bundledModules(code: string): readonly string[] {
  const marker = '//# sourceMappingURL=data:application/json;charset=utf-8;base64,';
  const start = code.lastIndexOf(marker);
  if (start < 0) throw new Error('the workflow bundle has no source map; what is in it is not known');
  const map = JSON.parse(Buffer.from(code.slice(start + marker.length), 'base64').toString()) as {
    sources: string[];
  };
  return map.sources;
}

function packageOf(module: string): string | undefined {
  return /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(module)?.[1];
}
