"""The public names of ``graphfcl.report``: type checkers and the package itself read this list."""

from graphfcl.report.blocks import (
    Block as Block,
    claims as claims,
)
from graphfcl.report.comparison import (
    paper_tables as paper_tables,
)
from graphfcl.report.differences import (
    FolderDifference as FolderDifference,
    RowDifference as RowDifference,
    folder_differences as folder_differences,
)
from graphfcl.report.figures import (
    accuracy_figure as accuracy_figure,
    curves_figure as curves_figure,
    matrix_figure as matrix_figure,
    row_styles as row_styles,
)
from graphfcl.report.findings import (
    Findings as Findings,
    claims_by_dataset as claims_by_dataset,
    collect as collect,
)
from graphfcl.report.page import (
    write_page as write_page,
)
from graphfcl.report.rows import (
    FORM as FORM,
    ORACLE as ORACLE,
    POOL as POOL,
    QUERIES as QUERIES,
    Row as Row,
    summary as summary,
)
from graphfcl.report.shots import (
    ShotCurves as ShotCurves,
    shot_curves as shot_curves,
)
from graphfcl.report.statistics import (
    Claims as Claims,
    Comparison as Comparison,
    compare_pairs as compare_pairs,
    compare_with as compare_with,
)
from graphfcl.report.table import (
    Table as Table,
    latex as latex,
    markdown as markdown,
)
from graphfcl.report.table1 import (
    dataset_rows as dataset_rows,
    write_dataset_table as write_dataset_table,
)
from graphfcl.report.tables import (
    all_tables as all_tables,
    cost_table as cost_table,
    lead_tables as lead_tables,
    overview_table as overview_table,
    result_table as result_table,
)

__all__: list[str]
