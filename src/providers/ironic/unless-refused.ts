import { isRefusal } from "../../capabilities/device-failure.ts";

/** For what not every driver of Ironic's can do: `undefined` where it declines. */
export async function unlessRefused<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (isRefusal(error)) return undefined;
    throw error;
  }
}
