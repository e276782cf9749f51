"""What `import perfemu` offers: the names of perfemu.api."""

from perfemu.api import AccessError as AccessError
from perfemu.api import AnnotatedFunction as AnnotatedFunction
from perfemu.api import AnnotatedInstruction as AnnotatedInstruction
from perfemu.api import EventReport as EventReport
from perfemu.api import EventSyntaxError as EventSyntaxError
from perfemu.api import Guest as Guest
from perfemu.api import Interval as Interval
from perfemu.api import LivePmu as LivePmu
from perfemu.api import NamedCounts as NamedCounts
from perfemu.api import PerfemuError as PerfemuError
from perfemu.api import Recording as Recording
from perfemu.api import RegisterValue as RegisterValue
from perfemu.api import ReportResult as ReportResult
from perfemu.api import ReportRow as ReportRow
from perfemu.api import RunResult as RunResult
from perfemu.api import SampleTable as SampleTable
from perfemu.api import StatResult as StatResult
from perfemu.api import UsageError as UsageError
from perfemu.api import annotate as annotate
from perfemu.api import open_pmu as open_pmu
from perfemu.api import record as record
from perfemu.api import report as report
from perfemu.api import run as run
from perfemu.api import samples as samples
from perfemu.api import share_pmu as share_pmu
from perfemu.api import stat as stat
