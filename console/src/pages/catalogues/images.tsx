import { type Image, ImageService } from "../../../../contract/millwright/v1/cluster_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";
import { Age } from "../../parts/age.tsx";

const columns: readonly Column<Image>[] = [
  { title: "Image", width: "minmax(120px, 1fr)", sort: "name", cell: ({ name }) => name },
  { title: "Kind", width: "110px", cell: ({ kind }) => kind },
  {
    title: "Location",
    width: "minmax(120px, 3fr)",
    from: "tablet",
    cell: ({ location }) => (
      <span className="mono" title={location}>
        {location}
      </span>
    ),
  },
  {
    title: "Digest",
    width: "150px",
    from: "desktop",
    cell: ({ digest }) => (
      <span className="mono" title={digest}>
        {digest.slice(0, 19)}
      </span>
    ),
  },
  { title: "Added", width: "92px", isNumber: true, from: "tablet", cell: ({ createdAt }) => <Age at={createdAt} /> },
];

/** What machines are repaved with. */
export const Images = () => (
  <ListPage
    title="Images"
    noun="image"
    kind="image"
    columns={columns}
    read={async (request, signal) => {
      const { images, nextPageToken, totalSize } = await clientOf(ImageService).listImages(request, { signal });
      return { items: images, nextPageToken, totalSize };
    }}
    idOf={({ name }) => name}
    idField="name"
    example="name^=ubuntu"
    cli="millwright image list"
    method={ImageService.method.listImages}
    empty="There are no images: `millwright image create` adds one."
    opens={false}
  />
);
