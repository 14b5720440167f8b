"""Columns of a table whose names are misspelt, or those of others."""

import numpy as np
import pytest

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers.motion import read_motion
from afterslip.readers.observations import Observations, read_observations
from afterslip.readers.places import read_points, read_stations
from afterslip.readers.slip import read_slip
from afterslip.schemas.observation import Series, Sigma

LOCAL = Frame("local")
HEAD = "station,x_km,y_km,east,north,up,sigma_e,sigma_n,sigma_u,type"
LINE = "A,1,2,1,2,3,.1,.2,.3,obp"
SIGMA = Sigma(horizontal=0.01, vertical=0.03, los=0.02)
PIXELS = "x_km,y_km,los,sigma_los,los_e,los_n,los_u"
PIXEL = "1,2,-0.5,0.02,0.6,0,0.8"


def read(head: str, line: str = LINE) -> Observations:
    return read_observations(f"{head}\n{line}\n".encode(), LOCAL, SIGMA, label="d")


def problems(head: str, line: str = LINE) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read(head, line)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("column", "written"),
    [
        ("up", "upp"), ("up", "up_mm"), ("up", "u_mm"), ("up", "up(m)"),
        ("north", "nroth"), ("north", "nort"), ("east", "eas"), ("type", "typ"),
        ("type", "tpye"), ("sigma_e", "sgima_e"), ("sigma_e", "sige"),
        ("sigma_n", "sigma_nn"), ("sigma_u", "sig_u(m)"), ("sigma_e", "sigma"),
    ],
)  # fmt: skip
def test_a_misspelt_column_is_refused_with_the_name_it_may_mean(
    column: str, written: str
) -> None:
    unit = ", in m" if written.endswith(("_mm", "(m)")) else ""
    gnss = LINE.replace("obp", "gnss")
    (only,) = problems(f",{HEAD},".replace(f",{column},", f",{written},")[1:-1], gnss)
    assert only == (
        f"d, column {written}: is not read "
        f"(did you mean {column}{unit}? rename it, or remove it)"
    )


@pytest.mark.parametrize("written", ["tim", "times", "tiem", "timeyr"])
def test_a_misspelt_time_is_refused(written: str) -> None:
    (only,) = problems(f"{HEAD},{written}", f"{LINE},0.5")
    assert f"column {written}: is not read (did you mean time" in only


def test_a_time_of_another_unit_is_one_problem() -> None:
    (only,) = problems(f"{HEAD},time_y", f"{LINE},0.5")
    assert "looks like a time" in only


def test_a_misspelt_correlation_is_refused() -> None:
    (only,) = problems(f"{HEAD},cor_en", f"{LINE},0.5")
    assert "did you mean corr_en?" in only


def test_sigma_of_pixels_is_refused_under_a_shorter_name() -> None:
    (only,) = problems(PIXELS.replace("sigma_los", "sigma"), PIXEL)
    assert "did you mean sigma_los?" in only


def test_misspelt_columns_of_ground_motion_are_refused() -> None:
    text = "station,x_km,y_km,time_s,east,north,vertcal\nA,1,2,0,0,0,0\nA,1,2,1,0,0,1"
    with pytest.raises(SpecError, match=r"column vertcal: .*did you mean up\?"):
        read_motion(text.encode(), LOCAL, Series(quantity="displacement"), SIGMA)


def test_depths_under_another_name_are_not_taken_for_points_at_the_ground() -> None:
    for name in ("depth", "depth_m", "dept_km"):
        with pytest.raises(SpecError, match=rf"{name}: .*did you mean depth_km"):
            read_points(f"x_km,y_km,{name}\n1,2,3\n".encode(), LOCAL)
    points = read_points(b"point,x_km,y_km,height,comment\nA,1,2,3,x\n", LOCAL)
    assert points.depth.tolist() == [0.0]


OTHER = (
    "height,network,n_obs,rms,corr,quality,comment,height_m,data_set,snr,flag,dist_km,"
    "theta,phi,coherence,timing,tide,item,reference,solution,dataset,chi2,weight,id"
)


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (HEAD, LINE),
        (PIXELS, PIXEL),
        ("station,x_km,y_km,east,north", "A,1,2,1,2"),
        ("station,x_km,y_km,up,type", "A,1,2,1,obp"),
    ],
)
def test_columns_that_are_like_none_are_left_out(head: str, line: str) -> None:
    others = OTHER.split(",")
    longer = f"{line},{','.join('7' * len(others))}"
    found = read(f"{head},{OTHER}", longer).rows()
    expected = read(head, line).rows()
    for field in ("value", "sigma", "kind", "epoch"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))


def test_a_misspelt_column_matters_only_where_it_holds_what_is_missing() -> None:
    assert len(read(f"{HEAD},typ,tim,upp", f"{LINE},obp,,3")) == 1
    line = "A,1,2,1,2,,.1,.2,,gnss"
    assert len(read(HEAD.replace("up", "upp").replace("sigma_upp", "x"), line)) == 1


@pytest.mark.parametrize(
    ("up", "sigma"),
    [("vert", "sig_u"), ("vertical", "std_up"), ("uplift", "u_err"), ("U", "vert_sd")],
)
def test_usual_names_of_components_and_errors_are_read(up: str, sigma: str) -> None:
    head = HEAD.replace("sigma_u", sigma).replace("up,", f"{up},")
    found = read(head).rows()
    assert found.value.tolist() == [3]
    assert found.sigma.tolist() == [0.3]
    assert found.given.tolist() == [True]


def test_two_names_of_one_column_are_named() -> None:
    (only,) = problems(f"{HEAD},vert", f"{LINE},3")
    assert only == (
        "d line 1 = up: is the name of two columns "
        "(remove or rename all but one of up, vert)"
    )


def test_misspelt_names_of_stations_need_no_rule() -> None:
    for head in ("staton,x_km,y_km", "station,x_m,y_km", "station,x_km,ykm"):
        with pytest.raises(SpecError, match=r"has no column .*rename "):
            read_stations(f"{head}\nA,1,2\n".encode(), LOCAL)


def test_a_rake_is_no_misspelt_strike() -> None:
    with pytest.raises(SpecError, match=r"strike = slip cos\(rake\)"):
        read_slip(b"x_km,y_km,depth_km,slip,rake\n1,2,3,4,90\n", LOCAL)
