"""BibTeX of papers that several solvers and passes implement."""

from __future__ import annotations

BAECHI = """@inproceedings{jeon2020baechi,
  author    = {Beomyeol Jeon and Linda Cai and Pallavi Srivastava and Jintao Jiang and Xiaolan Ke and Yitao Meng and
               Cong Xie and Indranil Gupta},
  title     = {Baechi: Fast Device Placement of Machine Learning Graphs},
  booktitle = {Proceedings of the 11th ACM Symposium on Cloud Computing (SoCC)},
  pages     = {416--430},
  year      = {2020},
  doi       = {10.1145/3419111.3421302}
}"""

BRAUN = """@article{braun2001comparison,
  author  = {Tracy D. Braun and Howard Jay Siegel and Noah Beck and Ladislau L. B{\\"o}l{\\"o}ni and Muthucumaru
             Maheswaran and Albert I. Reuther and James P. Robertson and Mitchell D. Theys and Bin Yao and Debra
             Hensgen and Richard F. Freund},
  title   = {A comparison of eleven static heuristics for mapping a class of independent tasks onto heterogeneous
             distributed computing systems},
  journal = {Journal of Parallel and Distributed Computing},
  volume  = {61},
  number  = {6},
  pages   = {810--837},
  year    = {2001},
  doi     = {10.1006/jpdc.2000.1714}
}"""

CARBONARI = """@misc{carbonari2017submodular,
  author = {Amanda Carbonari and Nodir Kodirov and Maximilian Golub},
  title  = {TensorFlow Job Placement Optimization as a Submodular Function Maximization},
  year   = {2017},
  note   = {Project report}
}"""

GIPH = """@inproceedings{hu2023giph,
  author    = {Yi Hu and Chaoran Zhang and Edward Andert and Harshul Singh and Aviral Shrivastava and James Laudon and
               Yanqi Zhou and Bob Iannucci and Carlee Joe-Wong},
  title     = {{GiPH}: Generalizable Placement Learning for Adaptive Heterogeneous Computing},
  booktitle = {Proceedings of Machine Learning and Systems 5 (MLSys)},
  year      = {2023},
  doi       = {10.48550/arXiv.2305.14562}
}"""

TOPCUOGLU = """@article{topcuoglu2002heft,
  author  = {Haluk Topcuoglu and Salim Hariri and Min-You Wu},
  title   = {Performance-effective and low-complexity task scheduling for heterogeneous computing},
  journal = {IEEE Transactions on Parallel and Distributed Systems},
  volume  = {13},
  number  = {3},
  pages   = {260--274},
  year    = {2002},
  doi     = {10.1109/71.993206}
}"""
