import { useNavigate, useSearch } from "@tanstack/react-router";

/** The filter and the order of a list, kept in the address: every view is a link. */
export function useListSearch() {
  const search = useSearch({ strict: false }) as Readonly<Record<string, string | undefined>>;
  const navigate = useNavigate();
  const set = (change: Readonly<Record<string, string>>) =>
    void navigate({ search: { ...search, ...change } as never, replace: true });
  return {
    filter: search.filter ?? "",
    orderBy: search.order ?? "",
    setFilter: (filter: string) => set({ filter }),
    setOrder: (order: string) => set({ order }),
  };
}
