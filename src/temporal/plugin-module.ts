import { existsSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { isRecord, typeName } from '../contract/checks';
import { quote, singleLine } from '../contract/text';

/** The methods of a plugin that return changed options. The SDK calls them, except those for connections. */
export const OPTIONS_METHODS = [
  ...['configureConnection', 'configureNativeConnection', 'configureClient', 'configureWorker'],
  'configureBundler',
];
const METHODS = [...OPTIONS_METHODS, 'configureReplayWorker', 'runWorker'];

/** The longest text of an error that a plugin threw. */
const MAX_ERROR_CHARACTERS = 2_000;
const MAX_CAUSES = 5;

/** A problem that is reported with only this message: without its causes, a stack position and advice. */
export class PluginProblem extends Error {}

/** Loads a module, and returns the plugin that is its default export or the result of this function. */
export async function importPlugin(module: string): Promise<object> {
  const { default: exported } = (await import(toUrl(module))) as { readonly default?: unknown };
  // The default export of a CommonJS module is `module.exports`. A compiler may have put its own default export into it.
  const value = isRecord(exported) && exported.__esModule === true ? exported.default : exported;
  const plugin: unknown = typeof value === 'function' ? await (value as () => unknown)() : value;
  if (isPlugin(plugin)) return plugin;
  const subject =
    typeof value === 'function'
      ? 'the result of the function that is the default export'
      : 'the default export';
  throw new PluginProblem(
    `${module}: ${subject} is ${describeValue(plugin)}; export a Temporal plugin (an object with a name and methods such as ` +
      'configureWorker and configureClient) or a function that returns one. For a data converter or interceptors, export a ' +
      'SimplePlugin of @temporalio/plugin',
  );
}

export function describeValue(value: unknown): string {
  if (!isRecord(value)) return value === undefined ? 'nothing' : typeName(value);
  const names = Object.keys(value).join(', ');
  return `an object with ${names === '' ? 'no properties' : `the properties ${names}`}`;
}

/** Returns whether a value has a name and a method of a plugin. A data converter, for example, has none of these methods. */
function isPlugin(value: unknown): value is object {
  if (!isRecord(value) || typeof value.name !== 'string' || value.name === '') return false;
  return METHODS.some((method) => typeof value[method] === 'function');
}

/** Returns the URL of a module. Paths and packages are searched for in the working directory. */
function toUrl(module: string): string {
  const file = path.resolve(module);
  const isFile = statSync(file, { throwIfNoEntry: false })?.isFile() === true;
  if (isFile) return pathToFileURL(file).href;
  if (path.isAbsolute(module) || /^\.{0,2}[\\/]/.test(module))
    throw new PluginProblem(`${module}: ${file} is not a file; set the path of a JavaScript module`);
  return pathToFileURL(resolvePackage(module)).href;
}

function resolvePackage(name: string): string {
  const require = createRequire(path.resolve('package.json'));
  try {
    return require.resolve(name);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'MODULE_NOT_FOUND')
      throw new PluginProblem(
        `${name} is neither a file nor an installed package; set the path of a JavaScript module, or install the package in ` +
          process.cwd(),
      );
    if (code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw error;
    // The package exports only an ES module, which `resolve` does not find.
    const folders = (require.resolve.paths(name) ?? []).map((folder) => path.join(folder, name));
    const folder = folders.find((each) => existsSync(path.join(each, 'package.json')));
    if (folder === undefined) throw error;
    const manifest: unknown = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
    const target = importTarget(isRecord(manifest) ? manifest.exports : undefined);
    if (target === undefined) throw error;
    return path.join(folder, target);
  }
}

const IMPORT_CONDITIONS = ['.', 'node', 'import', 'module-sync', 'default'];

/** Returns the file that a package exports for `import`, in the order of its `exports`. */
function importTarget(exported: unknown): string | undefined {
  if (typeof exported === 'string') return exported;
  if (!isRecord(exported)) return undefined;
  const key = Object.keys(exported).find((each) => IMPORT_CONDITIONS.includes(each));
  return key === undefined ? undefined : importTarget(exported[key]);
}

/** Returns the messages of an error and its causes, and the first position in the stack. */
export function errorText(error: unknown): string {
  if (error instanceof PluginProblem) return error.message;
  const texts: string[] = [];
  let cause = error;
  do {
    texts.push(isError(cause) ? String(cause) : quote(cause));
    cause = isError(cause) ? cause.cause : undefined;
  } while (cause !== undefined && texts.length < MAX_CAUSES);
  const stack = isError(error) ? (error.stack ?? '') : '';
  const [position] = /(?<=\(|at )(?:file:\/\/)?(?:\/|[A-Z]:\\)[^\n()]*:\d+/.exec(stack) ?? [];
  return singleLine(
    texts.join(', because of: ') + (position === undefined ? '' : ` (${position})`),
    MAX_ERROR_CHARACTERS,
  );
}

/** Returns whether a value is an error, also an error of another JavaScript realm. */
function isError(value: unknown): value is Error {
  return isRecord(value) && 'message' in value;
}
