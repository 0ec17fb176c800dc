import type { ClientPlugin, ConnectionPlugin } from '@temporalio/client';
import type { BundlerPlugin, NativeConnectionPlugin, WorkerPlugin } from '@temporalio/worker';
import { isRecord, type Problem } from '../contract/checks';
import { ConfigurationError, type Environment, readVariable } from './connection-config';
import { describeValue, errorText, importPlugin, OPTIONS_METHODS, PluginProblem } from './plugin-module';
import { SERVICE_LINK } from './temporal-variables';

/** A Temporal plugin. Each part of a program uses only the methods that concern this part, and all of them are optional. */
export type TemporalPlugin = ClientPlugin &
  ConnectionPlugin &
  NativeConnectionPlugin &
  WorkerPlugin &
  BundlerPlugin &
  Partial<AsyncDisposable>;

const VARIABLE = 'FOLLOW_UP_PLUGINS';

/** Names that probably mean `FOLLOW_UP_PLUGINS`. A mistake in the name would disable the encryption of payloads. */
const SIMILAR_NAME = /^FOLLOW_UP_(?:PLUGIN|DATA_CONVERTER)/;

/** The time in which the plugins must finish their work when a program ends, for example send the last spans. */
const DISPOSE_TIMEOUT_MS = 5_000;

/**
 * Loads the modules that `FOLLOW_UP_PLUGINS` names, in this order. Paths and package names are resolved from the working
 * directory. If the variable is not set, nothing is loaded.
 *
 * @throws ConfigurationError with the problems of all modules
 */
export async function loadPlugins(env: Environment): Promise<readonly TemporalPlugin[]> {
  const problems: Problem[] = Object.keys(env)
    .filter((name) => name !== VARIABLE && SIMILAR_NAME.test(name) && !SERVICE_LINK.test(name))
    .filter((name) => readVariable(env, name) !== undefined)
    .map((name) => ({
      field: name,
      text: `is not a variable of this program; rename it to ${VARIABLE}, or unset it`,
    }));
  const entries = readVariable(env, VARIABLE)?.split(',') ?? [];
  const modules = entries.map((entry) => entry.trim()).filter(Boolean);
  if (modules.length < entries.length)
    problems.push({ field: VARIABLE, text: 'has an empty entry; remove the extra comma' });
  const plugins: TemporalPlugin[] = [];
  const causes: unknown[] = [];
  for (const [index, module] of modules.entries()) {
    try {
      if (modules.indexOf(module) < index)
        throw new PluginProblem(`names ${module} twice; remove one of the two`);
      plugins.push(reportFailures(module, (await importPlugin(module)) as TemporalPlugin));
    } catch (error) {
      const unreadable = `${module} can't be loaded: ${errorText(error)}; correct the module or the variable`;
      problems.push({ field: VARIABLE, text: error instanceof PluginProblem ? error.message : unreadable });
      causes.push(error);
    }
  }
  if (problems.length === 0) return plugins;
  await disposePlugins(plugins);
  throw new ConfigurationError(problems, { cause: causes[0] });
}

/**
 * Returns a plugin whose failures are configuration errors that name the module. The methods of the returned plugin call those of
 * the original plugin.
 */
function reportFailures(module: string, plugin: TemporalPlugin): TemporalPlugin {
  const failure: Failure = (method, error) => {
    const text = `${module}: ${method} of the plugin ${plugin.name} failed: ${errorText(error)}; correct or remove the plugin`;
    return new ConfigurationError([{ field: VARIABLE, text }], { cause: error });
  };
  const methods = plugin as unknown as Readonly<Record<string, OptionsMethod | undefined>>;
  const guarded: Record<string | symbol, unknown> = { name: plugin.name };
  for (const method of OPTIONS_METHODS) {
    const configure = methods[method]?.bind(plugin);
    if (configure !== undefined) guarded[method] = guardOptionsMethod(method, configure, failure);
  }
  if (plugin.runWorker !== undefined)
    guarded.runWorker = guardRunWorker(plugin.runWorker.bind(plugin), failure);
  if (plugin[Symbol.asyncDispose] !== undefined)
    guarded[Symbol.asyncDispose] = plugin[Symbol.asyncDispose]?.bind(plugin);
  return guarded as unknown as TemporalPlugin;
}

type Failure = (method: string, error: unknown) => ConfigurationError;
type OptionsMethod = (options: unknown) => unknown;

function guardOptionsMethod(method: string, configure: OptionsMethod, failure: Failure): OptionsMethod {
  const check = (options: unknown) => {
    if (isRecord(options)) return options;
    throw new PluginProblem(`it returned ${describeValue(options)} instead of the options`);
  };
  const fail = (error: unknown) => {
    throw failure(method, error);
  };
  return (options) => {
    try {
      const configured = configure(options);
      // Only the options of a worker may be a promise.
      return method === 'configureWorker'
        ? Promise.resolve(configured).then(check).catch(fail)
        : check(configured);
    } catch (error) {
      return fail(error);
    }
  };
}

type RunWorker = NonNullable<TemporalPlugin['runWorker']>;

/** Reports only failures before the worker runs. Later errors are failures of the worker. */
function guardRunWorker(runWorker: RunWorker, failure: Failure): RunWorker {
  return async (worker, next) => {
    const run = { isStarted: false };
    try {
      await runWorker(worker, (running) => {
        run.isStarted = true;
        return next(running);
      });
    } catch (error) {
      throw run.isStarted ? error : failure('runWorker', error);
    }
  };
}

/**
 * Returns the options of a connection after every plugin has changed them. The plugins are not part of these options, because the
 * SDK would then also apply them to each client and worker that uses the connection.
 */
export function configureConnection<Options extends object>(
  plugins: readonly TemporalPlugin[],
  method: 'configureConnection' | 'configureNativeConnection',
  options: Options,
): Options {
  return plugins.reduce<Options>(
    (configured, plugin) => (plugin[method]?.(configured) as Options | undefined) ?? configured,
    options,
  );
}

/** Waits until the plugins have finished their work, for at most five seconds. Failures are ignored, because the program ends. */
export async function disposePlugins(plugins: readonly TemporalPlugin[]): Promise<void> {
  const disposing = plugins.map(async (plugin) => plugin[Symbol.asyncDispose]?.());
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise((resolve) => (timer = setTimeout(resolve, DISPOSE_TIMEOUT_MS)));
  await Promise.race([Promise.allSettled(disposing), timeout]);
  clearTimeout(timer);
}
